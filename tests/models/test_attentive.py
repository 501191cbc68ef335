import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Words
from regard.models.attentive import AttentiveConfig, AttentiveLM
from regard.models.recurrent import RecurrentConfig, RecurrentLM

SMALL = {"vocabulary_size": 11, "hidden_size": 12, "embedding_size": 5, "init_range": 0.5}


def plain_states(model, batch):
    """What the same recurrent network says without looking back."""
    plain = RecurrentLM(RecurrentConfig(**SMALL))
    plain.reader.load_state_dict(model.reader.state_dict())
    return plain.features(batch)[0]


@pytest.mark.parametrize("split", ["none", "key-value", "key-value-predict"])
@pytest.mark.parametrize("current", [False, True])
def test_it_is_the_paper_s_formula_written_out(split, current, words):
    model = AttentiveLM(AttentiveConfig(**SMALL, window=3, split=split, include_current=current))
    batch = words(2, 7)
    states = plain_states(model, batch)
    size = 12 // {"none": 1, "key-value": 2, "key-value-predict": 3}[split]
    parts = {"k": states[..., :size], "v": states[..., -size:], "p": states[..., -size:]}
    if split == "key-value-predict":
        parts["v"] = states[..., size : 2 * size]
    score = model.attention.score
    W, U, v = score.query.weight, score.key.weight, score.direction
    said = model(batch)
    for row in range(2):
        for t in range(7):
            seen = range(max(0, t - 3), t + current)
            read = torch.zeros(size)
            if seen:
                key = parts["k"][row]
                scores = torch.stack([v @ torch.tanh(W @ key[t] + U @ key[i]) for i in seen])
                read = scores.softmax(0) @ parts["v"][row][list(seen)]
            mixed = torch.tanh(model.mix(torch.cat([read, parts["p"][row, t]])))
            assert_close(said[row, t], model.output(mixed), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("score", ["dot", "scaled-dot", "general"])
def test_the_first_word_has_nothing_to_look_at_and_reads_zeros(score, words):
    model, batch = AttentiveLM(AttentiveConfig(**SMALL, score=score)), words(2, 7)
    read = []
    model.attention.register_forward_hook(lambda part, inputs, looked: read.append(looked))
    model(batch)
    (looked,) = read
    assert not looked.weights[:, 0].any() and not looked.context[:, 0].any()
    assert_close(looked.weights[:, 1:].sum(dim=-1), torch.ones(2, 6))


def test_nobody_looks_further_back_than_the_window(words):
    model, batch = AttentiveLM(AttentiveConfig(**SMALL, window=2)), words(2, 7)
    with watch(model) as seen:
        model(batch)
    weights = seen["attention"][0].weights  # (batch, query, key)
    distance = torch.arange(7)[:, None] - torch.arange(7)
    assert ((weights > 0) == ((distance >= 1) & (distance <= 2))).all()


def test_the_memory_reaches_back_over_the_border_of_a_segment(words):
    """A changed word in the last segment changes where the first of this one looks."""
    model, batch = AttentiveLM(AttentiveConfig(**SMALL, window=3)), words(2, 7)
    _, state = model.features(batch)
    with watch(model) as seen:
        model.features(words(2, 5), state.detach())
    weights = seen["attention"][0].weights
    assert weights.shape == (2, 5, 3 + 5)
    assert (weights[:, 0, :3] > 0).all() and not weights[:, 0, 3:].any()


def test_no_gradient_crosses_the_border_of_a_detached_segment(words):
    model, batch = AttentiveLM(AttentiveConfig(**SMALL)), words(2, 7)
    _, state = model.features(batch)
    assert state.keys.requires_grad
    assert not any(part.requires_grad for part in state.detach()[1:])
    assert not state.detach().recurrent.hidden.requires_grad


def test_the_words_of_a_short_row_are_remembered_beside_a_long_one():
    model = AttentiveLM(AttentiveConfig(**SMALL, window=5))
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 0, 0, 0, 0, 0]])
    mask = torch.arange(7) < torch.tensor([[7], [2]])
    _, state = model.features(Words(ids, ids, mask))
    assert state.lengths.tolist() == [5, 2]
    _, alone = model.features(Words(ids[1:, :2], ids[1:, :2], mask[1:, :2]))
    assert_close(state.keys[1, -2:], alone.keys[0])


def test_key_value_predict_leaves_each_job_its_own_third(words):
    model = AttentiveLM(AttentiveConfig(**SMALL, split="key-value-predict"))
    states = torch.randn(2, 7, 12)
    keys, values, predicting = model._split(states)
    assert_close(torch.cat([keys, values, predicting], dim=-1), states)


def test_a_fresh_model_begins_as_the_plain_one(words):
    model = AttentiveLM(AttentiveConfig(**SMALL))
    with torch.no_grad():
        model.mix.weight[:, : model.config.part_size] = 0.0  # nothing of what was read
    batch = words(3, 7)
    features, _ = model.features(batch)
    assert_close(features, plain_states(model, batch).tanh())
    assert model.mix.bias is None  # section 2.1 has none
