"""What holds of every language model: it reads from left to right, and says the same whichever way
it is asked."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Words
from regard.models.catalog import build

SMALL = {"vocabulary_size": 11}
LSTM = {**SMALL, "hidden_size": 12, "embedding_size": 5}
GPT = {**SMALL, "model_size": 12, "heads": 3, "layers": 2, "longest": 19}
# Every setting that changes how a model reads comes once or more, and no two are crossed.
ITSELF = {"window": 2, "include_current": True, "score": "general"}
POST = {"norm": "post", "activation": "relu", "bias": False}
MODELS = {
    "window": ("window", {**SMALL, "embedding_size": 5, "hidden_size": 7, "direct": True}),
    "bigram window": ("window", {**SMALL, "order": 2}),
    "lstm, tied": ("rnn", {**LSTM, "tied": True}),
    "gru": ("rnn", {**LSTM, "kind": "gru", "embedding_size": None}),
    "attentive": ("attentive-rnn", {**LSTM, "window": 3}),
    "with itself": ("attentive-rnn", {**LSTM, **ITSELF, "split": "key-value-predict"}),
    "lstmn": ("lstmn", {**LSTM, "attention_size": 7}),
    "two lstmns": ("lstmn", {**LSTM, "layers": 2}),
    "gpt": ("gpt2", GPT),
    "sinusoidal": ("gpt2", {**GPT, "positions": "sinusoidal", "tied": False}),
    "rotary, post-norm": ("gpt2", {**GPT, **POST, "positions": "rotary"}),
    "backpack": ("backpack", {**GPT, "senses": 4}),
    "backpack, rotary": ("backpack", {**GPT, **POST, "senses": 4, "positions": "rotary"}),
}
SEQUENTIAL = [name for name, (kind, _) in MODELS.items() if kind not in ("gpt2", "backpack")]
CARRYING = [name for name in SEQUENTIAL if MODELS[name][0] != "lstmn"]
CLOSE = {"atol": 2e-6, "rtol": 2e-5}


@pytest.fixture(params=MODELS)
def model(request):
    name, settings = MODELS[request.param]
    made = build(name, "language-model", **settings).eval()
    # Larger weights than models start with, so that nothing is equal for being nearly zero.
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.5)
    if name == "window":
        with torch.no_grad():
            made.embedding.weight[made.padding_id] = 0.0
    if name == "backpack":  # no norm behind its senses: logits of 100 leave fewer digits
        with torch.no_grad():
            made.senses.output.contract.weight.mul_(0.05)
    return made


def stepped(model, ids, state):
    """Logits (batch, position, vocabulary), one word after the other, and the state after."""
    said = []
    for word in ids.unbind(dim=1):
        logits, state = model.step(word, state)
        said.append(logits)
    return torch.stack(said, dim=1), state


def test_logits_are_the_output_layer_s_reading_of_the_features(model, words):
    batch = words(2, 7)
    features, _ = model.features(batch)
    assert features.shape == (2, 7, model.output.in_features)
    assert_close(model(batch), model.output(features))
    assert model(batch).shape == (2, 7, 11)


def test_a_later_word_changes_nothing_that_was_said_before(model, words):
    batch = words(2, 7)
    before = model(batch)
    changed = batch.inputs.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 11
    after = model(Words(changed, batch.targets, batch.mask))
    assert_close(after[:, :4], before[:, :4])
    assert (after[:, 4] - before[:, 4]).abs().max() > 1e-3


@torch.no_grad()
def test_word_by_word_is_the_same_as_all_at_once(model, words):
    batch = words(3, 13)
    empty = Words(batch.inputs[:, :0], batch.targets[:, :0], batch.mask[:, :0])
    said, _ = stepped(model, batch.inputs, model.start(empty))
    assert_close(said, model(batch), **CLOSE)


@torch.no_grad()
def test_a_prompt_read_at_once_is_a_prompt_read_word_by_word(model, words):
    batch = words(3, 13)
    prompt = Words(batch.inputs[:, :5], batch.targets[:, :5], batch.mask[:, :5])
    said, _ = stepped(model, batch.inputs[:, 5:], model.start(prompt))
    assert_close(said, model(batch)[:, 5:], **CLOSE)


@torch.no_grad()
def test_a_prompt_says_the_same_alone_and_beside_a_longer_one(model):
    prompts = [[3, 1, 4, 1, 5, 9, 2], [6, 5], [], [8, 9, 7]]
    following = torch.randint(11, (4, 5))
    together, _ = stepped(model, following, model.start(Words.prompts(prompts)))
    for row, ids in enumerate(prompts):
        alone, _ = stepped(model, following[row : row + 1], model.start(Words.prompts([ids])))
        assert_close(together[row : row + 1], alone, **CLOSE)


@torch.no_grad()
def test_what_stands_in_the_padding_does_not_matter(model):
    prompts = [[3, 1, 4, 1], [6]]
    for side in ("start", "features"):
        said = []
        for filler in (0, 7):
            batch = Words.prompts(prompts, filler)
            if side == "start":
                said.append(stepped(model, torch.tensor([[2], [2]]), model.start(batch))[0])
            else:
                said.append(model(batch)[batch.mask])
        assert_close(said[0], said[1])


def test_padding_on_the_left_moves_a_row_and_changes_nothing(model):
    batch = Words.prompts([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3]])
    alone = model(Words.prompts([[6, 5, 3]]))
    assert_close(model(batch)[1:, 4:], alone, **CLOSE)


def test_padding_on_the_right_changes_nothing(model, words):
    batch = words(2, 7)
    mask = torch.arange(7) < torch.tensor([[7], [3]])
    padded = model(Words(batch.inputs, batch.targets, mask))
    assert_close(padded[mask], model(batch)[mask], **CLOSE)


@torch.no_grad()
def test_picked_rows_go_on_as_if_they_had_always_been_alone(model):
    prompts = [[3, 1, 4], [6, 5], [2, 7, 1, 8]]
    rows = torch.tensor([2, 0, 0, 2])
    following = torch.randint(11, (4, 3))
    state = model.start(Words.prompts(prompts))
    picked, _ = stepped(model, following, state.pick(rows))
    fresh = model.start(Words.prompts([prompts[row] for row in rows.tolist()]))
    expected, _ = stepped(model, following, fresh)
    assert_close(picked, expected, **CLOSE)


@torch.no_grad()
def test_a_state_can_be_gone_on_from_more_than_once(model):
    state = model.start(Words.prompts([[3, 1, 4], [6, 5]]))
    ways = [torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]])]
    first, _ = stepped(model, ways[0], state)
    stepped(model, ways[1], state)
    again, _ = stepped(model, ways[0], state)
    assert_close(again, first)


@torch.no_grad()
def test_no_prompt_at_all_is_a_prompt_of_nothing(model):
    state = model.start(Words.prompts([[], []]))
    said, _ = model.step(torch.tensor([1, 2]), state)
    expected = model(Words.prompts([[1], [2]]))
    assert_close(said.unsqueeze(1), expected, **CLOSE)


def test_every_parameter_learns(model, words):
    batch = words(3, 13)
    model(batch).logsumexp(dim=-1).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_a_detached_state_has_no_history(model, words):
    batch = words(2, 5)
    state = model.start(batch).detach()
    expected, _ = model.step(batch.inputs[:, 0], model.start(batch))
    for _ in range(2):  # torch refuses to go back through the same history twice
        said, _ = model.step(batch.inputs[:, 0], state)
        assert_close(said, expected)
        said.sum().backward()


@pytest.mark.parametrize("name", CARRYING)
def test_segments_with_their_state_carried_are_one_long_run(name, words):
    kind, settings = MODELS[name]
    model = build(kind, "language-model", **settings)
    batch = words(2, 17)
    whole = model(batch)
    state, said = None, []
    for part in (slice(0, 1), slice(1, 6), slice(6, 7), slice(7, 17)):
        segment = Words(batch.inputs[:, part], batch.targets[:, part], batch.mask[:, part])
        features, state = model.features(segment, state)
        state = state.detach()
        said.append(model.output(features))
    assert model.carries
    assert_close(torch.cat(said, dim=1), whole, **CLOSE)


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_packed_documents_are_refused_by_whoever_would_mix_them_up(name, words):
    kind, settings = MODELS[name]
    batch = words(2, 7)
    packed = Words(batch.inputs, batch.targets, batch.mask, torch.zeros_like(batch.inputs))
    with pytest.raises(ValueError, match="documents are packed in the rows of this batch"):
        build(kind, "language-model", **settings)(packed)


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("gpt", ["layers.0.attention", "layers.1.attention"]),
        ("attentive", ["attention"]),
        (
            "backpack",
            ["layers.0.attention", "layers.1.attention", "sense_weights.attention"],
        ),
        ("two lstmns", ["layers.0.attention", "layers.1.attention"]),
        ("lstm, tied", []),
    ],
)
def test_attention_is_watched_under_the_path_it_has(name, paths, words):
    kind, settings = MODELS[name]
    with watch(build(kind, "language-model", **settings)) as seen:
        pass
    assert list(seen) == paths
