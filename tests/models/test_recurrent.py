import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.models.recurrent import LockedDropout, RecurrentConfig, RecurrentLM


def theirs(model):
    """torch's own network with the weights of a model moved over."""
    config = model.config
    kind = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[config.kind]
    other = kind(config.word_size, config.hidden_size, config.layers, batch_first=True)
    with torch.no_grad():
        for layer, cell in enumerate(model.reader.recurrent.cells):
            for name, weight in cell.named_parameters():
                getattr(other, f"{name}_l{layer}").copy_(weight)
    return other


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_it_is_torch_s_network_between_an_embedding_and_a_linear_layer(kind, words):
    config = RecurrentConfig(vocabulary_size=11, kind=kind, hidden_size=7, embedding_size=5)
    model, batch = RecurrentLM(config), words(3, 13)
    states, _ = theirs(model)(F.embedding(batch.inputs, model.reader.embedding.weight))
    expected = states @ model.output.weight.T + model.output.bias
    assert_close(model(batch), expected)


def test_gradients_are_torch_s_too(words):
    model, batch = RecurrentLM(RecurrentConfig(vocabulary_size=11, hidden_size=7)), words(3, 13)
    other = theirs(model)
    table, output = (
        weight.detach().clone().requires_grad_()
        for weight in (model.reader.embedding.weight, model.output.weight)
    )
    F.cross_entropy(model(batch).flatten(0, 1), batch.targets.flatten()).backward()
    logits = F.linear(other(F.embedding(batch.inputs, table))[0], output, model.output.bias)
    F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).backward()
    assert_close(model.reader.embedding.weight.grad, table.grad)
    assert_close(model.output.weight.grad, output.grad)
    assert_close(model.reader.recurrent.cells[1].weight_hh.grad, other.weight_hh_l1.grad)


def test_weights_start_within_the_range_and_fill_it():
    model = RecurrentLM(RecurrentConfig(vocabulary_size=101, init_range=0.04))
    for name, weight in model.named_parameters():
        assert weight.abs().max() <= 0.04, name
        assert weight.abs().max() > 0.038, name


def test_a_tied_model_has_one_table_and_a_layer_that_fits_states_to_it():
    tied = RecurrentLM(RecurrentConfig(vocabulary_size=11, embedding_size=5, tied=True))
    assert tied.output.weight is tied.reader.embedding.weight
    assert tied.narrow(torch.zeros(200)).shape == (5,)
    alike = RecurrentLM(RecurrentConfig(vocabulary_size=11, tied=True))
    assert sum(w.numel() for w in alike.narrow.parameters()) == 0


def test_the_small_model_of_zaremba_has_about_five_million_weights():
    model = RecurrentLM(RecurrentConfig(vocabulary_size=10_000))
    # 2 tables of 10,000 × 200, an output bias, and 2 layers of 4 · 200 · (200 + 200) + 2 · 800
    assert sum(w.numel() for w in model.parameters()) == 4_010_000 + 2 * 321_600


def test_dropout_acts_on_the_way_up_and_never_through_time(words):
    """With every way up cut but one, a state in the first layer is what it would be without."""
    config = RecurrentConfig(vocabulary_size=11, hidden_size=7, dropout=0.5, input_dropout=0.0)
    model, batch = RecurrentLM(config), words(3, 13)
    features, state = model.features(batch)
    model.eval()
    _, without = model.features(batch)
    assert_close(state.hidden[0], without.hidden[0])
    assert not torch.allclose(state.hidden[1], without.hidden[1])
    assert 0.3 < (features == 0).float().mean() < 0.7


def test_locked_dropout_drops_the_same_at_every_position():
    dropped = LockedDropout(0.5)(torch.ones(3, 13, 101))
    assert_close(dropped, dropped[:, :1].expand_as(dropped))
    assert sorted(dropped.unique().tolist()) == [0.0, 2.0]
    assert not torch.equal(dropped[0], dropped[1])


def test_a_locked_model_reads_the_same_features_at_every_position(words):
    config = RecurrentConfig(vocabulary_size=11, hidden_size=37, dropout=0.5, locked=True)
    features, _ = RecurrentLM(config).features(words(3, 13))
    gone = features == 0
    assert torch.equal(gone, gone[:, :1].expand_as(gone)) and gone.any() and not gone.all()


def test_a_dropped_word_is_dropped_wherever_it_stands(words):
    config = RecurrentConfig(vocabulary_size=11, hidden_size=7, word_dropout=0.5)
    reader = RecurrentLM(config).reader
    batch = words(5, 41)
    vectors = reader._drop_words(reader.embedding(batch.inputs), batch.inputs)
    for word in range(11):
        at = batch.inputs == word
        gone = (vectors[at] == 0).all(dim=-1)
        assert gone.all() or not gone.any()
        if not gone.any():
            assert_close(vectors[at], 2 * reader.embedding(batch.inputs)[at])


def test_dropped_recurrent_weights_come_back_in_evaluation_and_learn(words):
    config = RecurrentConfig(vocabulary_size=11, hidden_size=7, weight_dropout=0.5)
    model, batch = RecurrentLM(config), words(3, 13)
    assert not torch.allclose(model(batch), model(batch))
    model(batch).logsumexp(dim=-1).sum().backward()
    slope = model.reader.recurrent.cells[0].weight_hh.grad
    assert 0.3 < (slope == 0).float().mean() < 0.7  # a dropped weight does not learn this time
    plain = RecurrentLM(RecurrentConfig(vocabulary_size=11, hidden_size=7))
    plain.load_state_dict(model.state_dict())
    assert_close(model.eval()(batch), plain(batch))


def test_everything_at_once_trains(words):
    config = RecurrentConfig(
        vocabulary_size=11,
        hidden_size=12,
        embedding_size=5,
        tied=True,
        dropout=0.2,
        output_dropout=0.3,
        locked=True,
        word_dropout=0.1,
        weight_dropout=0.4,
    )
    model = RecurrentLM(config)
    model(words(3, 13)).logsumexp(dim=-1).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())
