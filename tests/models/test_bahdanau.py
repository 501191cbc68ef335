import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Pairs
from regard.models.bahdanau import Bahdanau, BahdanauConfig

SMALL = {
    "vocabulary_size": 11,
    "source_vocabulary_size": 13,
    "embedding_size": 5,
    "hidden_size": 7,
    "attention_size": 3,
    "readout_size": 2,
}
CLOSE = {"atol": 2e-6, "rtol": 2e-5}
START = 0


def pairs(lengths, target, sources=13, targets=11):
    longest = max(lengths)
    source = torch.randint(sources, (len(lengths), longest))
    source_mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    words = torch.randint(1, targets, (len(lengths), target))
    said = torch.cat([torch.full((len(lengths), 1), START), words[:, :-1]], dim=1)
    return Pairs(source, source_mask, said, words, torch.ones_like(words, dtype=torch.bool))


@pytest.fixture
def model():
    made = Bahdanau(BahdanauConfig(**SMALL)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.4)
    return made


def by_hand(model, source, target_input):
    """The paper's equations for one sentence, word by word, with torch's GRU cells."""
    encoder, decoder = model.encoder, model.decoder
    gru = nn.GRU(5, 7, bidirectional=True)
    cell = nn.GRUCell(5 + 14, 7)
    with torch.no_grad():
        for part, end in zip(encoder.recurrent.cells, ("_l0", "_l0_reverse"), strict=True):
            for name, weight in part.named_parameters():
                getattr(gru, name + end).copy_(weight)
        cell.load_state_dict(decoder.cell.state_dict())
    h, _ = gru(encoder.embedding.weight[source])  # (source, 14)
    s = torch.tanh(decoder.first(h[0, 7:]))  # the backward state at the first word
    score, logits = decoder.attention.score, []
    for word in target_input:
        y = decoder.embedding.weight[word]
        pairs = torch.tanh(score.query(s) + score.key(h))  # (source, 3)
        a = (pairs @ score.direction).softmax(0)
        c = a @ h
        s = cell(torch.cat([y, c])[None], s[None])[0]
        t = decoder.pieces(torch.cat([s, y, c]))
        t = torch.stack([t[:2], t[2:]]).max(dim=0).values
        logits.append(model.output(t))
    return torch.stack(logits)


@pytest.mark.parametrize("learning", [True, False])  # all steps at once, and one after the other
def test_it_is_the_paper_s_equations_written_out(model, learning):
    batch = pairs([7, 3], 5)
    with torch.set_grad_enabled(learning):
        for row, length in enumerate((7, 3)):
            expected = by_hand(model, batch.source[row, :length], batch.target_input[row])
            assert_close(model(batch)[row], expected, **CLOSE)


@torch.no_grad()
def test_word_by_word_is_the_same_as_all_at_once(model):
    batch = pairs([7, 3, 1], 5)
    state, said = model.start(batch), []
    for ids in batch.target_input.unbind(dim=1):
        logits, state = model.step(ids, state)
        said.append(logits)
    assert_close(torch.stack(said, dim=1), model(batch), **CLOSE)


def test_a_sentence_is_translated_alike_alone_and_beside_a_longer_one(model):
    batch = pairs([7, 3], 5)
    alone = batch.pick(torch.tensor([1]))
    alone = Pairs(alone.source[:, :3], alone.source_mask[:, :3], *list(vars(alone).values())[2:])
    assert_close(model(batch)[1:], model(alone), **CLOSE)


def test_a_later_word_changes_nothing_that_was_said_before(model):
    batch = pairs([7, 3], 5)
    before = model(batch)
    batch.target_input[:, 3] = 9
    assert_close(model(batch)[:, :3], before[:, :3])


def test_padding_of_the_source_is_never_looked_at(model):
    with watch(model) as seen:
        model(pairs([7, 3], 5))
    assert list(seen) == ["decoder.attention"]
    weights = torch.cat([looked.weights for looked in seen["decoder.attention"]], dim=1)
    assert weights.shape == (2, 5, 7)
    assert not weights[1, :, 3:].any()
    assert_close(weights.sum(dim=-1), torch.ones(2, 5))


@torch.no_grad()
def test_picked_rows_go_on_as_if_they_had_always_been_alone(model):
    batch = pairs([7, 3, 5], 5)
    for chosen in ([2, 0, 0, 1], [0, 1, 2], [2, 0, 1], [1]):
        rows = torch.tensor(chosen)
        state = model.start(batch).pick(rows)
        fresh = model.start(batch.pick(rows))
        ids = torch.arange(len(rows))
        assert_close(model.step(ids, state)[0], model.step(ids, fresh)[0], **CLOSE)


@torch.no_grad()
def test_a_beam_that_stays_within_its_sentences_copies_no_memory(model):
    state = model.start(pairs([7, 3], 5)).pick(torch.tensor([0, 0, 1, 1]))
    traded = state.pick(torch.tensor([1, 1, 3, 2]))
    assert traded.source is state.source
    ended = state.pick(torch.tensor([0, 1]))
    assert ended.source.memory.shape[0] == 2


def test_keys_are_prepared_once_for_a_sentence(model, monkeypatch):
    calls = []
    prepare = model.decoder.attention.prepare
    monkeypatch.setattr(
        model.decoder.attention, "prepare", lambda keys: calls.append(1) or prepare(keys)
    )
    model(pairs([7, 3], 5))
    assert len(calls) == 1


def test_every_parameter_learns(model):
    model(pairs([7, 3], 5)).logsumexp(dim=-1).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_a_detached_state_has_no_history(model):
    state = model.start(pairs([7, 3], 5)).detach()
    for _ in range(2):  # torch refuses to go back through the same history twice
        model.step(torch.tensor([1, 2]), state)[0].sum().backward()


def test_without_a_source_vocabulary_both_languages_share_one_size():
    model = Bahdanau(BahdanauConfig(**SMALL | {"source_vocabulary_size": None}))
    assert model.encoder.embedding.vocabulary_size == 11


@pytest.mark.parametrize("backward", [False, True])
def test_it_learns_to_copy_along_the_diagonal_and_to_reverse_along_the_other(backward):
    torch.manual_seed(1)
    sizes = {"embedding_size": 32, "hidden_size": 64, "attention_size": 32, "readout_size": 32}
    model = Bahdanau(BahdanauConfig(vocabulary_size=8, **sizes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

    def drawn(count):
        source = torch.randint(1, 8, (count, 5))
        words = source.flip(1) if backward else source
        said = F.pad(words[:, :-1], (1, 0), value=START)
        every = torch.ones_like(source, dtype=torch.bool)
        return Pairs(source, every, said, words, every)

    for _ in range(150):
        batch = drawn(64)
        loss = F.cross_entropy(model(batch).flatten(0, 1), batch.target_output.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    batch = drawn(200)
    with watch(model) as seen, torch.no_grad():
        said = model(batch).argmax(dim=-1)
    assert (said == batch.target_output).all(dim=1).float().mean() > 0.9
    weights = torch.cat([looked.weights for looked in seen["decoder.attention"]], dim=1)
    looked_at = weights.mean(dim=0) @ torch.arange(5.0)  # where each word looks, on average
    # A word's annotation knows its neighbours, so looking beside a word is as good as looking at
    # it; but the gaze must wander from one end of the source to the other.
    wandering = torch.corrcoef(torch.stack([looked_at, torch.arange(5.0)]))[0, 1]
    assert wandering < -0.9 if backward else wandering > 0.9


def test_one_table_serves_source_target_and_output_if_asked():
    sizes = {**SMALL, "source_vocabulary_size": None, "readout_size": 5}
    model = Bahdanau(BahdanauConfig(**sizes, tied=True, shared=True))
    table = model.output.weight
    assert model.encoder.embedding.weight is table and model.decoder.embedding.weight is table
    ids = torch.tensor([[1, 2]])
    assert_close(model.encoder.embedding(ids), model.decoder.embedding(ids))
    with pytest.raises(ValueError, match=r"source_vocabulary_size \(13\) must be vocabulary_size"):
        BahdanauConfig(**SMALL, shared=True)
    with pytest.raises(ValueError, match=r"readout_size \(2\) must be embedding_size \(5\)"):
        BahdanauConfig(**SMALL, tied=True)
