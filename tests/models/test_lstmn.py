"""An LSTM that looks at all it has read before it reads on."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import Side, edit, make_looks, watch
from regard.data.batches import LabelledTexts, Words
from regard.models.lstmn import LSTMNLM, LSTMNClassifier, LSTMNConfig

SMALL = {"vocabulary_size": 11, "hidden_size": 6, "embedding_size": 5, "attention_size": 7}
PATH = "layers.0.attention"


def large(model):
    """With weights so large that no look is nearly uniform."""
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.7)
    return model.eval()


def read_word_by_word(model, ids):
    """The paper's equations, one sentence (position,) at a time, in plain torch: h_1 … h_T."""
    layer = model.layers[0]
    score, cell = layer.attention.score, layer.cell
    W_x, W_mixed = score.query.weight.split([5, 6], dim=1)
    reference = nn.LSTMCell(5, 6)
    reference.load_state_dict(cell.state_dict())
    hiddens, cells, mixed = [], [], torch.zeros(6)
    for x in model.embedding(ids):
        mixed_cell = torch.zeros(6)
        if hiddens:
            sums = [score.key.weight @ h + W_x @ x + W_mixed @ mixed for h in hiddens]
            weights = torch.stack([score.direction @ each.tanh() for each in sums]).softmax(0)
            mixed = sum(s * h for s, h in zip(weights, hiddens, strict=True))
            mixed_cell = sum(s * c for s, c in zip(weights, cells, strict=True))
        (hidden,), (memory,) = reference(x[None], (mixed[None], mixed_cell[None]))
        hiddens.append(hidden)
        cells.append(memory)
    return torch.stack(hiddens)


def test_it_is_the_paper_s_equations_written_out(words):
    model, batch = large(LSTMNLM(LSTMNConfig(**SMALL))), words(3, 8)
    expected = torch.stack([read_word_by_word(model, ids) for ids in batch.inputs])
    assert_close(model.features(batch)[0], expected, atol=1e-5, rtol=1e-4)
    assert_close(model(batch), model.output(expected), atol=1e-5, rtol=1e-4)


def test_the_first_word_finds_the_tapes_empty_and_reads_zeros(words):
    model = large(LSTMNLM(LSTMNConfig(**SMALL)))
    tape = model.initial_state(3).tapes[0]
    assert tape.memory.values.shape == (3, 0, 12) and tape.memory.keys.keys.shape == (3, 0, 7)
    batch = words(3, 1)
    expected, _ = model.layers[0].cell(model.embedding(batch.inputs[:, 0]))  # from a zero state
    assert_close(model.features(batch)[0][:, 0], expected)


def test_both_tapes_are_mixed_by_the_same_weights(words):
    """Told to look at the second word alone, the fourth goes on from that word's h and its c."""
    model, batch = large(LSTMNLM(LSTMNConfig(**SMALL))), words(3, 4)

    def second(weights, mask, call):
        if weights.shape[-1] < 3:
            return weights
        return nn.functional.one_hot(torch.ones(3, 1, dtype=torch.long), 3).float()

    with edit(model, {PATH: second}):
        features, state = model.features(batch)
    hidden, cell = state.tapes[0].memory.values[:, 1].chunk(2, dim=-1)
    reference = nn.LSTMCell(5, 6)
    reference.load_state_dict(model.layers[0].cell.state_dict())
    expected, _ = reference(model.embedding(batch.inputs[:, 3]), (hidden, cell))
    assert_close(features[:, 3], expected)
    assert not torch.equal(hidden, cell)


def test_what_was_read_last_decides_where_to_look_next(words):
    model, batch = large(LSTMNLM(LSTMNConfig(**SMALL))), words(2, 5)
    looks = []
    for kept in (1.0, 0.0):
        with torch.no_grad():
            model.layers[0].attention.score.query.weight[:, 5:] *= kept
        with watch(model) as seen:
            model(batch)
        looks.append(seen.stitch(PATH))
    assert_close(looks[0][:, :2], looks[1][:, :2])  # nothing, or one word, to look at
    assert (looks[0][:, 3:] - looks[1][:, 3:]).abs().max() > 1e-3


def test_each_word_looks_at_strictly_earlier_words_under_their_own_labels():
    model = large(LSTMNLM(LSTMNConfig(**SMALL)))
    tokens = ["The", "FBI", "is", "chasing", "a", "criminal"]
    with watch(model) as seen:
        model(Words.of_ids(torch.tensor([[1, 2, 3, 4, 5, 6]])))
    (look,) = make_looks(model, seen, {"words": Side(tokens)})
    assert look.kind == "self" and [label.text for label in look.queries] == tokens
    earlier = torch.ones(6, 6, dtype=torch.bool).tril(-1)
    assert torch.equal(look.weights[0] > 0, earlier)
    assert torch.equal(look.mask[0], earlier)
    assert look.weights[0, 1, 0] == 1.0  # «FBI» has «The» alone to look at
    assert_close(look.weights.sum(-1), torch.tensor([[0.0, 1, 1, 1, 1, 1]]))


def test_steps_behind_a_prompt_look_at_it_under_its_own_labels():
    model, given = large(LSTMNLM(LSTMNConfig(**SMALL))), {"words": Side(list("abcd"))}
    looks = []
    with watch(model) as seen:
        state = model.start(Words.prompts([[1, 2]]))
        for word in (3, 4):
            _, state = model.step(torch.tensor([word]), state)
    looks += make_looks(model, seen, given)
    with watch(model) as seen:
        model(Words.of_ids(torch.tensor([[1, 2, 3, 4]])))
    looks += make_looks(model, seen, given)
    assert_close(looks[0].weights, looks[1].weights)


def test_a_classifier_reads_the_mean_of_the_hidden_states_of_real_words():
    model = large(LSTMNClassifier(LSTMNConfig(**SMALL, classes=3)))
    texts = [[1, 2, 3, 4, 5], [6, 7]]
    ids = torch.tensor([texts[0], [*texts[1], 9, 9, 9]])
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    logits = model(LabelledTexts(ids, mask, torch.zeros(2, dtype=torch.long)))
    for row, text in enumerate(texts):
        mean = read_word_by_word(model, torch.tensor(text)).mean(0)
        expected = model.output(model.hidden(mean).clamp(min=0))
        assert_close(logits[row], expected, atol=1e-5, rtol=1e-4)


def test_a_classifier_must_know_how_many_classes_there_are():
    with pytest.raises(ValueError, match=r"classes \(None\) must be at least 1"):
        LSTMNClassifier(LSTMNConfig(**SMALL))
