"""The translator without attention, against torch's LSTM."""

import torch
from torch import nn
from torch.testing import assert_close

from regard.data.batches import Pairs
from regard.models.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.models.source import reverse_words

CLOSE = {"atol": 2e-6, "rtol": 2e-5}


def build(**settings):
    sizes = {"vocabulary_size": 11, "embedding_size": 5, "hidden_size": 5, "layers": 2}
    made = Seq2Seq(Seq2SeqConfig(**sizes | settings)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.4)
    return made


def pairs():
    source_mask = torch.arange(7) < torch.tensor([7, 3])[:, None]
    target_mask = torch.arange(4) < torch.tensor([4, 2])[:, None]
    source, target = torch.randint(11, (2, 7)), torch.randint(11, (2, 4))
    return Pairs(source, source_mask, target, target, target_mask)


def torch_lstm(recurrent):
    lstm = nn.LSTM(5, 5, num_layers=2)
    with torch.no_grad():
        for layer, cell in enumerate(recurrent.cells):
            for name, weight in cell.named_parameters():
                getattr(lstm, f"{name}_l{layer}").copy_(weight)
    return lstm


def test_it_is_two_of_torch_s_lstms_with_the_source_read_backward():
    model, batch = build(), pairs()
    said = model(batch)
    encode, decode = torch_lstm(model.encoder.recurrent), torch_lstm(model.decoder)
    for row, (source, target) in enumerate(((7, 4), (3, 2))):
        words = model.encoder.embedding.weight[batch.source[row, :source].flip(0)]
        _, state = encode(words)
        hidden, _ = decode(model.embedding.weight[batch.target_input[row, :target]], state)
        assert_close(said[row, :target], model.output(hidden), **CLOSE)


@torch.no_grad()
def test_word_by_word_is_the_same_as_all_at_once():
    model, batch = build(tied=True), pairs()
    state, said = model.start(batch), []
    for ids in batch.target_input.unbind(dim=1):
        logits, state = model.step(ids, state)
        said.append(logits)
    real = batch.target_mask
    assert_close(torch.stack(said, dim=1)[real], model(batch)[real], **CLOSE)


def test_words_are_turned_round_within_their_length():
    rows = torch.arange(8.0).view(2, 4, 1)
    turned = reverse_words(rows, torch.tensor([4, 2]))
    assert turned.squeeze(-1).tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]
