import torch
from torch.testing import assert_close

from regard.data.batches import Words
from regard.models.window import WindowConfig, WindowLM


def test_the_logits_are_the_paper_s_formula_written_out():
    model = WindowLM(
        WindowConfig(vocabulary_size=11, order=4, embedding_size=5, hidden_size=7, direct=True)
    )
    C, H, d = model.embedding.weight, model.hidden.weight, model.hidden.bias
    U, W = model.output.weight.split([7, 15], dim=1)
    b = model.output.bias
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    said = model(Words(ids, ids, ids >= 0))
    for place, window in ((2, [3, 1, 4]), (3, [1, 4, 1]), (4, [4, 1, 5])):
        x = torch.cat([C[word] for word in window])
        assert_close(said[0, place], b + W @ x + U @ torch.tanh(d + H @ x))
    x = torch.cat([torch.zeros(10), C[3]])  # nothing stands before the first word
    assert_close(said[0, 0], b + W @ x + U @ torch.tanh(d + H @ x))


def test_a_word_beyond_the_window_is_forgotten():
    model = WindowLM(WindowConfig(vocabulary_size=11, order=3))
    ids = torch.tensor([[3, 1, 4, 1], [7, 1, 4, 1]])
    said = model(Words(ids, ids, ids >= 0))
    assert_close(said[0, 2:], said[1, 2:])
    assert not torch.equal(said[0, 1], said[1, 1])


def test_what_stands_before_the_first_word_learns_nothing():
    model = WindowLM(WindowConfig(vocabulary_size=11))
    ids = torch.tensor([[3, 1]])
    model(Words(ids, ids, ids >= 0)).sum().backward()
    assert not model.embedding.weight.grad[model.padding_id].any()
    assert not model.embedding.weight[model.padding_id].any()
