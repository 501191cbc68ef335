import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Causal, make_looks, watch
from regard.attention.sides import Side
from regard.data.batches import Words
from regard.models.backpack import Backpack, BackpackConfig
from regard.models.catalog import build

SMALL = {"vocabulary_size": 11, "model_size": 15, "heads": 3, "layers": 2, "longest": 19}
SENSES, SIZE = 5, 15


def shaken(**settings):
    """A model whose weights are all large enough to matter, its norms and biases too."""
    model = Backpack(BackpackConfig(**SMALL, senses=SENSES, **settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


def read(text):
    ids = torch.tensor([text])
    return Words(ids, ids, ids >= 0)


def linear(weights, name, x):
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def norm(weights, name, x):
    centred = x - x.mean()
    standard = centred / (centred.square().mean() + 1e-5).sqrt()
    return standard * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def feedforward(weights, name, x):
    x = linear(weights, f"{name}.expand", x)
    x = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return linear(weights, f"{name}.contract", x)


def senses_by_hand(weights, word):
    """The k vectors of one word, by the network of the paper's code."""
    x = weights["embedding.weight"][word]
    x = x + norm(weights, "senses.input_norm", x)
    x = x + feedforward(weights, "senses.feedforward", norm(weights, "senses.feedforward_norm", x))
    output = feedforward(weights, "senses.output", norm(weights, "senses.output_norm", x))
    return [output[SIZE * sense : SIZE * (sense + 1)] for sense in range(SENSES)]


def attend_by_hand(queries, keys, place):
    scores = [queries[place] @ keys[j] / math.sqrt(len(keys[j])) for j in range(place + 1)]
    largest = max(scores)
    shares = [torch.exp(score - largest) for score in scores]
    return [share / sum(shares) for share in shares]


def contexts_by_hand(weights, text, heads=3, layers=2):
    """What a GPT-2 makes of each word, one word, one head, one layer after the other."""
    x = [weights["embedding.weight"][w] + weights["positions.table"][i] for i, w in enumerate(text)]
    for layer in range(layers):
        name = f"layers.{layer}"
        packed = [
            linear(
                weights,
                f"{name}.attention.projection",
                norm(weights, f"{name}.attention_norm", each),
            ).view(3, heads, -1)
            for each in x
        ]
        for i in range(len(text)):
            pieces = []
            for head in range(heads):
                queries, keys, values = ([p[part, head] for p in packed] for part in range(3))
                shares = attend_by_hand(queries, keys, i)
                pieces.append(sum(s * v for s, v in zip(shares, values, strict=False)))
            x[i] = x[i] + linear(weights, f"{name}.attention.output", torch.cat(pieces))
            inner = norm(weights, f"{name}.feedforward_norm", x[i])
            x[i] = x[i] + feedforward(weights, f"{name}.feedforward", inner)
    return [norm(weights, "norm", each) for each in x]


def backpack_by_hand(weights, text):
    """Logits (position, vocabulary) and α (sense, position, position), all in loops."""
    contexts = contexts_by_hand(weights, text)
    packed = [linear(weights, "sense_weights.projection", h).view(2, SENSES, -1) for h in contexts]
    senses = [senses_by_hand(weights, word) for word in text]
    alpha = torch.zeros(SENSES, len(text), len(text))
    logits = []
    for i in range(len(text)):
        output = torch.zeros(SIZE)
        for sense in range(SENSES):
            queries, keys = ([p[part, sense] for p in packed] for part in range(2))
            for j, share in enumerate(attend_by_hand(queries, keys, i)):
                alpha[sense, i, j] = share
                output = output + share * senses[j][sense]
        logits.append(weights["embedding.weight"] @ output)
    return torch.stack(logits), alpha


@torch.no_grad()
def test_a_backpack_is_what_loops_over_words_senses_and_heads_give():
    model, text = shaken(), [3, 1, 4, 1, 5, 9, 2]
    with watch(model) as seen:
        logits = model(read(text))[0]
    expected, alpha = backpack_by_hand(model.state_dict(), text)
    assert_close(logits, expected, atol=2e-5, rtol=1e-4)
    (weighed,) = seen["sense_weights.attention"]
    assert_close(weighed.weights[0], alpha, atol=1e-6, rtol=1e-5)


def test_logits_are_linear_in_the_senses(words):
    model, ids = shaken(), words(2, 7).inputs
    context, ones, others = torch.randn(2, 7, SIZE), model.senses(ids), torch.randn(2, 7, 5, SIZE)
    say = partial(model.sense_weights, context, mask=Causal())
    sum_of_both = 3 * model.output(say(ones)) - 2 * model.output(say(others))
    assert_close(model.output(say(3 * ones - 2 * others)), sum_of_both, atol=1e-4, rtol=1e-4)


def test_senses_are_the_same_wherever_and_beside_whatever_a_word_stands():
    model = shaken()
    alone = model.senses(torch.tensor(4))
    assert alone.shape == (SENSES, SIZE)
    for text in ([4, 1], [2, 2, 4, 9], [[3, 4]]):
        ids = torch.tensor(text)
        assert_close(model.senses(ids)[ids == 4], alone.unsqueeze(0), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("preset", "millions", "count"),
    [
        # Vocabulary and positions, layers of 12 d² + 13 d, the last norm; then the three norms of
        # the senses, their networks 8 d² + 5 d and 4 d² + 4 d + (4 d + 1) k d, and 2 d² + 2 d.
        ("micro", 40, 50_769 * 384 + 6 * 1_774_464 + 768 + 11_514_240),
        ("mini", 100, 50_769 * 640 + 8 * 4_923_520 + 1_280 + 31_969_920),
        ("small", 170, 170_078_208),
    ],
)
def test_the_presets_are_as_large_as_the_paper_says(preset, millions, count):
    with torch.device("meta"):
        model = build("backpack", preset=preset, vocabulary_size=50_257)
    found = sum(weight.numel() for weight in model.parameters())
    assert found == count
    assert found / 1e6 == pytest.approx(millions, rel=0.05)
    assert model.config.senses == 16


@torch.no_grad()
def test_a_sense_switched_off_takes_away_what_it_said_and_nothing_else():
    model, text = shaken(), [3, 1, 4, 1, 5]
    with watch(model) as seen:
        before = model(read(text))[0]
    alpha = seen["sense_weights.attention"][0].weights[0, 2]  # of sense 2: (query, key)
    after = model.with_senses({1: {2: 0.0}})(read(text))[0]
    share = alpha[:, 1] + alpha[:, 3]  # where word 1 stands
    said = model.output(model.senses(torch.tensor(1))[2])
    assert_close(before - after, share[:, None] * said, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_two_words_can_exchange_a_sense():
    model = shaken()
    exchanged = model.with_senses({1: {2: (4, 3)}, 4: {3: (1, 2)}})
    one, four = model.senses(torch.tensor([1, 4]))
    new_one, new_four = exchanged.senses(torch.tensor([1, 4]))
    assert_close(new_one[2], four[3])
    assert_close(new_four[3], one[2])
    kept = [0, 1, 3, 4]
    assert_close(new_one[kept], one[kept])
    assert_close(exchanged.senses(torch.tensor([7])), model.senses(torch.tensor([7])))


@torch.no_grad()
def test_an_edit_shares_the_weights_and_leaves_the_model_as_it_was():
    model, batch = shaken(), read([3, 1, 4, 1, 5])
    before, names = model(batch), list(model.state_dict())
    edited = model.with_senses({1: {0: 5.0}})
    changed = edited(batch)
    assert not torch.allclose(changed, before)
    assert_close(model(batch), before, atol=0, rtol=0)
    assert list(model.state_dict()) == names
    assert edited.embedding.weight is model.embedding.weight


@torch.no_grad()
def test_an_edited_model_says_the_same_word_by_word():
    model, text = shaken().with_senses({1: {0: -3.0, 4: (2, 2)}}), [3, 1, 4, 1, 5]
    state = model.start(Words.prompts([[]]))
    steps = []
    for word in text:
        logits, state = model.step(torch.tensor([word]), state)
        steps.append(logits)
    assert_close(torch.stack(steps, 1), model(read(text)), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("change", [{1: {5: 0.0}}, {1: {0: (2, 5)}}, {1: {-1: 0.0}}])
def test_a_sense_that_is_not_there_is_refused(change):
    with pytest.raises(ValueError, match=r"sense \((5|-1)\) must be from 0 to 4"):
        shaken().with_senses(change)


def test_the_look_shows_words_by_the_senses_of_words():
    model, text = shaken(), [3, 1, 4]
    with watch(model) as seen:
        model(read(text))
    *_, look = make_looks(model, seen, {"words": Side(["a", "b", "c"])})
    assert (look.path, look.kind) == ("sense_weights.attention", "senses")
    assert look.heads == tuple(f"sense {number}" for number in range(SENSES))
    assert [label.text for label in look.keys] == ["a", "b", "c"]
    assert_close(look.weights.sum(-1), torch.ones(SENSES, 3))


def test_senses_must_share_the_model_evenly():
    with pytest.raises(ValueError, match=r"model_size \(15\) must be a multiple of senses \(4\)"):
        BackpackConfig(**SMALL, senses=4)


@torch.no_grad()
def test_a_new_model_weighs_the_senses_of_the_word_at_hand_most():
    model = build("backpack", preset="laptop", vocabulary_size=1000)
    ids = torch.randint(1000, (4, 20))
    with watch(model) as seen:
        model.features(Words.of_ids(ids))
    weights = seen["sense_weights.attention"][0].weights  # (batch, sense, query, key)
    own = weights.diagonal(dim1=-2, dim2=-1)[..., 1:]
    others = weights.tril(-1)[..., 1:, :].amax(dim=-1)
    assert (own > others).float().mean() > 0.95
    assert model.senses(ids).std() > 5 * model.embedding.weight.std()


def test_packed_documents_are_read_as_if_each_were_alone():
    model, texts = shaken(), [[3, 1, 4, 1], [5, 9], [2, 6, 5]]
    ids = torch.tensor([[word for text in texts for word in text]])
    documents = torch.tensor([[number for number, text in enumerate(texts) for _ in text]])
    packed = model(Words(ids, ids, ids >= 0, documents))[0]
    expected = torch.cat([model(read(text))[0] for text in texts])
    assert_close(packed, expected, atol=2e-5, rtol=1e-4)
