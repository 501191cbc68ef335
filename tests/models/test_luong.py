"""Luong's translator, against its equations written out with torch's own cells."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Pairs
from regard.models.luong import SCOPES, SCORES, Luong, LuongConfig

SMALL = {
    "vocabulary_size": 11,
    "source_vocabulary_size": 13,
    "embedding_size": 5,
    "hidden_size": 6,
    "layers": 2,
    "longest": 9,
    "reach": 2,
    "dropout": 0.0,
}
CLOSE = {"atol": 2e-6, "rtol": 2e-5}


def pairs(lengths, target):
    longest = max(lengths)
    source = torch.randint(13, (len(lengths), longest))
    source_mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    words = torch.randint(1, 11, (len(lengths), target))
    said = torch.cat([torch.zeros(len(lengths), 1, dtype=torch.long), words[:, :-1]], dim=1)
    return Pairs(source, source_mask, said, words, torch.ones_like(words, dtype=torch.bool))


def build(**settings):
    made = Luong(LuongConfig(**SMALL | settings)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.4)
    return made


def torch_lstm(recurrent, size):
    lstm = nn.LSTM(size, 6, num_layers=2)
    with torch.no_grad():
        for layer, cell in enumerate(recurrent.cells):
            for name, weight in cell.named_parameters():
                getattr(lstm, f"{name}_l{layer}").copy_(weight)
    return lstm


def scores_by_hand(model, h, memory):
    score, kind = model.decoder.attention.score, model.config.score
    if kind == "dot":
        return memory @ h
    if kind == "general":
        return memory @ (score.matrix.weight @ h)
    if kind == "concat":
        joint = torch.cat([score.query.weight, score.key.weight], dim=1)
        both = torch.cat([h.expand(len(memory), -1), memory], dim=1)
        return torch.tanh(both @ joint.T) @ score.direction
    return (score.places.weight @ h)[: len(memory)]


def weights_by_hand(model, h, memory, step):
    scores, weigh = scores_by_hand(model, h, memory), model.decoder.attention.weigh
    length, places = len(memory), torch.arange(len(memory))
    if model.config.scope == "hard":
        return nn.functional.one_hot(scores.argmax(), length).float()
    if model.config.scope == "local-m":
        near = (places - min(step, length - 1)).abs() <= 2
        return scores.masked_fill(~near, -torch.inf).softmax(0)
    if model.config.scope == "local-p":
        centre = length * torch.sigmoid(weigh.place.weight @ torch.tanh(weigh.hidden.weight @ h))
        near = (places - centre).abs() <= 2
        soft = scores.masked_fill(~near, -torch.inf).softmax(0).nan_to_num(0.0)
        return soft * torch.exp(-((places - centre) ** 2) / (2 * 1.0**2))  # σ = D / 2 = 1
    return scores.softmax(0)


def by_hand(model, source, target_input):
    """The paper's equations for one sentence, word by word."""
    encoder, decoder, feeding = model.encoder, model.decoder, model.config.input_feeding
    outputs, state = torch_lstm(encoder.recurrent, 5)(encoder.embedding.weight[source.flip(0)])
    memory = outputs.flip(0)  # read backward, in the source's order
    lstm = torch_lstm(decoder.recurrent, 11 if feeding else 5)
    attentional, logits = torch.zeros(6), []
    for step, word in enumerate(target_input):
        y = decoder.embedding.weight[word]
        h, state = lstm((torch.cat([y, attentional]) if feeding else y)[None], state)
        c = weights_by_hand(model, h[0], memory, step) @ memory
        attentional = torch.tanh(decoder.combine.weight @ torch.cat([c, h[0]]))
        logits.append(model.output.weight @ attentional)
    return torch.stack(logits)


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize(
    ("score", "scope"),
    [*((score, "global") for score in SCORES), *(("general", scope) for scope in SCOPES[1:])],
)
def test_it_is_the_paper_s_equations_written_out(score, scope, input_feeding):
    model = build(score=score, scope=scope, input_feeding=input_feeding)
    batch = pairs([7, 3], 5)
    said = model(batch)
    for row, length in enumerate((7, 3)):
        expected = by_hand(model, batch.source[row, :length], batch.target_input[row])
        assert_close(said[row], expected, **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("scope", SCOPES)
def test_word_by_word_is_the_same_as_all_at_once_also_for_picked_rows(scope, input_feeding):
    model = build(scope=scope, input_feeding=input_feeding)
    batch = pairs([7, 3, 1], 5)
    rows = torch.tensor([2, 0, 0, 1])
    state, said = model.start(batch), []
    for step, ids in enumerate(batch.target_input.unbind(dim=1)):
        if step == 2:  # others go on from here
            state, batch = state.pick(rows), batch.pick(rows)
            said, ids = [logits[rows] for logits in said], ids[rows]
        elif step > 2:
            ids = ids[rows]
        logits, state = model.step(ids, state)
        said.append(logits)
    assert_close(torch.stack(said, dim=1), model(batch), **CLOSE)


def test_without_input_feeding_all_states_look_in_one_call():
    batch = pairs([7, 3], 5)
    for input_feeding, calls, queries in ((False, 1, 5), (True, 5, 1)):
        model = build(input_feeding=input_feeding)
        with watch(model) as seen:
            model(batch)
        looked = seen["decoder.attention"]
        assert len(looked) == calls
        assert looked[0].weights.shape == (2, queries, 7)


def test_rows_of_local_p_are_not_normalised_again():
    model = build(scope="local-p", input_feeding=False)
    with watch(model) as seen:
        model(pairs([7, 3], 5))
    (looked,) = seen["decoder.attention"]
    totals = looked.weights.sum(dim=-1)
    assert (totals < 0.999).all() and (totals > 0).any()


def test_a_row_of_padding_changes_nothing_and_every_parameter_learns():
    for scope in ("global", "local-p"):
        model = build(scope=scope)
        model(pairs([7, 3], 5)).logsumexp(dim=-1).sum().backward()
        for name, weight in model.named_parameters():
            assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_location_says_how_many_positions_it_knows():
    model = build(score="location", scope="global", longest=4)
    with pytest.raises(
        ValueError, match=r"Location knows 4 positions \(longest\), but there are 7"
    ):
        model(pairs([7, 3], 5))
