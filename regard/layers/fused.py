"""One recurrent layer over whole sequences, by torch's kernels and with our cells' weights.

The results are those of the cells, step by step. Without padding there is one way; with padding
there are three, `run_packed`, `run_padded` and `run_unpadded`, and `run` takes the fastest.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.layers.cells import Cell, start_states
from regard.layers.state import RecurrentState, where
from regard.layers.unpadded import Layout
from regard.products import linear

# So far out that a sigmoid is exactly 0 or 1 whatever is added. Half precision can hold it.
SATURATED = 1e4


def run(
    cells: Sequence[Cell], inputs: Tensor, mask: Tensor | None, state: RecurrentState | None
) -> tuple[Tensor, RecurrentState]:
    """Run one layer, of one cell a direction, over whole sequences.

    (batch, time, input) → (batch, time, direction × hidden) and (direction, batch, hidden)
    """
    start = state or start_states(cells, len(inputs))
    if mask is None:
        return _kernel(cells, inputs, start, _weights(cells))
    # A frozen LSTM keeps its cell but not its hidden state. Behind the last word that is no matter;
    # read backward, the padding comes first, and only a hidden state of zero stays as it was.
    loses_start = state is not None and state.cell is not None and len(cells) == 2
    # torch's packed backward adds up a gradient as large as the batch once for every time step; the
    # padded one does not. Forward alone, leaving out the padding is worth more.
    training = torch.is_grad_enabled() and inputs.is_cpu
    if training and cells[0].steps is not None and not torch.is_autocast_enabled("cpu"):
        outputs, end = run_unpadded(cells, inputs, mask, start)
    elif training and cells[0].freezing_signs and not loses_start:
        outputs, end = run_padded(cells, inputs, mask, start)
    else:
        outputs, end = run_packed(cells, inputs, mask, start)
    has_words = mask.any(dim=1)
    if has_words.all():
        return outputs, end
    return outputs.masked_fill(~has_words[:, None, None], 0.0), where(has_words, end, start)


def run_packed(
    cells: Sequence[Cell], inputs: Tensor, mask: Tensor, start: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Run on a packed sequence, in which torch lays out words without padding."""
    # torch refuses an empty row. It gets one word of padding, and `run` takes the result away.
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    words = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    order, back = words.sorted_indices, words.unsorted_indices
    assert order is not None and back is not None
    data, end = _kernel(cells, words.data, start.pick(order), _weights(cells), words.batch_sizes)
    words = PackedSequence(data, words.batch_sizes, order, back)
    outputs, _ = pad_packed_sequence(words, batch_first=True, total_length=inputs.shape[1])
    return outputs, end.pick(back)


def run_padded(
    cells: Sequence[Cell], inputs: Tensor, mask: Tensor, start: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Run over padding too, with gates saturated there so that the state stays frozen.

    One more input, 1 at padding and 0 at words, enters by weights that pull gates to exactly 0 or
    1: an LSTM keeps its cell and lets nothing in, a GRU keeps its state. Gates that far out have no
    gradient either, so padding is as good as absent.
    """
    padding = ~mask.unsqueeze(-1)  # (batch, time, 1)
    inputs = torch.cat([inputs, padding.to(inputs.dtype)], dim=-1)  # (batch, time, input + 1)
    outputs, end = _kernel(cells, inputs, start, _weights(cells, frozen_at_padding=True))
    outputs = outputs.masked_fill(padding, 0.0)
    if end.cell is None:
        return outputs, end
    # An LSTM's output gate moves on behind the last word, so its last output is looked up there.
    last = (mask.sum(dim=1) - 1).clamp(min=0)
    rows = torch.arange(len(inputs), device=inputs.device)
    forward = outputs[rows, last, : cells[0].hidden_size]  # (batch, hidden)
    return outputs, RecurrentState(torch.stack([forward, *end.hidden[1:]]), end.cell)


def run_unpadded(
    cells: Sequence[Cell], inputs: Tensor, mask: Tensor, start: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Run over words alone, by steps whose backward pass is written out."""
    assert cells[0].steps is not None
    # An empty row gets one word of padding, and `run` takes the result away.
    layout = Layout(mask.sum(dim=1).clamp(min=1))
    words = layout.pack(inputs)  # (word, input)
    from_input = [linear(words, cell.weight_ih, cell.bias_ih) for cell in cells]
    from_input[1:] = [layout.reverse(backward) for backward in from_input[1:]]
    weight = torch.stack([cell.weight_hh for cell in cells])
    bias = torch.stack([cell.bias_hh for cell in cells])
    states: Tensor = cells[0].steps.apply(  # (direction, word, hidden)
        torch.stack(from_input), start.hidden[:, layout.order], weight, bias, layout.steps
    )
    in_place = [states[0], *(layout.reverse(backward) for backward in states[1:])]
    outputs = layout.pad(torch.cat(in_place, dim=-1), inputs.shape[1])
    return outputs, RecurrentState(states[:, layout.ends])


def _kernel(
    cells: Sequence[Cell],
    inputs: Tensor,
    start: RecurrentState,
    weights: list[Tensor],
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, RecurrentState]:
    start = start.map(Tensor.contiguous)
    before = start.hidden if start.cell is None else tuple(start)
    # Biases, layers, dropout, train, bidirectional. All that `train` does here is to allow for a
    # gradient, and one may be needed of a model in evaluation as well.
    options = (True, 1, 0.0, torch.is_grad_enabled(), len(cells) == 2)
    if batch_sizes is None:
        outputs, *end = cells[0].kernel(inputs, before, weights, *options, True)  # batch first
    else:
        outputs, *end = cells[0].kernel(inputs, batch_sizes, before, weights, *options)
    return outputs, RecurrentState(*end)


def _weights(cells: Sequence[Cell], *, frozen_at_padding: bool = False) -> list[Tensor]:
    weights = []
    for cell in cells:
        weight_ih: Tensor = cell.weight_ih
        if frozen_at_padding:
            weight_ih = torch.cat([weight_ih, _freezing_column(cell)], dim=1)
        weights += [weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    return weights


def _freezing_column(cell: Cell) -> Tensor:
    """The weights of the input that is 1 at padding, (blocks × hidden, 1)."""
    pull = SATURATED * cell.weight_ih.new_tensor(cell.freezing_signs)
    return pull.repeat_interleave(cell.hidden_size).unsqueeze(1)
