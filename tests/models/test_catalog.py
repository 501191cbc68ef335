from dataclasses import FrozenInstanceError, fields

import pytest

from regard.models.catalog import MODELS, Entry, build, entry
from regard.tasks import TASKS

NEURAL = [name for name in MODELS if name != "ngram"]


@pytest.mark.parametrize("name", NEURAL)
def test_a_model_is_built_by_its_name_and_keeps_its_config(name):
    words = {"vocabulary_size": 13, "dropout": 0.3}
    settings = {
        "gpt2": {**words, "model_size": 24},
        "bert": {**words, "model_size": 24, "classes": 3},
        "backpack": {**words, "model_size": 24, "senses": 4},
        "lstmn": {**words, "embedding_size": 7, "classes": 3},
        "dan": {**words, "embedding_size": 7, "classes": 3},
        "han": {**words, "embedding_size": 7, "classes": 3},
        "elmo": {**words, "hidden_size": 7, "projection_size": 5, "classes": 3},
        "ntm": {"inputs": 9, "outputs": 8, "slots": 13},
        "transformer": {**words, "model_size": 8, "heads": 2},
        "mlp": {"inputs": 9, "outputs": 1, "hidden_size": 5},
    }.get(name, {**words, "embedding_size": 7})
    for kind in MODELS[name].tasks:
        model = build(name, kind, **settings)
        assert type(model) is MODELS[name].model(kind)
        assert model.config == MODELS[name].config(**settings)
        with pytest.raises(FrozenInstanceError):
            setattr(model.config, next(iter(settings)), 17)


def test_a_model_of_one_task_need_not_be_told_which():
    assert MODELS["rnn"].model() is MODELS["rnn"].model("language-model")


def test_every_model_says_which_tasks_it_can_do_and_each_task_has_a_model():
    kinds = {kind for each in MODELS.values() for kind in each.tasks}
    assert kinds == set(TASKS)


def test_a_model_of_several_tasks_must_be_told_which():
    several = Entry("dan", "DANConfig", {"classification": "DAN", "language-model": "DAN"})
    assert several.model("classification").__name__ == "DAN"
    with pytest.raises(ValueError, match=r"task \(None\) must be one of classification, language-"):
        several.model()


def test_an_unknown_name_is_answered_with_the_nearest():
    wanted = r"model \('gtp2'\).*did you mean 'gpt2'\?"
    with pytest.raises(ValueError, match=wanted):
        entry("gtp2")


def test_an_unknown_setting_is_answered_with_the_nearest():
    wanted = r"rnn has no setting 'hiden'; did you mean 'hidden_size'\?"
    with pytest.raises(ValueError, match=wanted):
        build("rnn", vocabulary_size=13, hiden=7)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("window", {"order": 1}, r"order \(1\) must be at least 2"),
        ("window", {"dropout": 1.0}, r"dropout \(1.0\) must be at least 0 and below 1"),
        ("rnn", {"kind": "lstn"}, r"kind \('lstn'\) must be one of rnn, lstm, gru"),
        ("rnn", {"layers": 0}, r"layers \(0\) must be at least 1"),
        ("rnn", {"init_range": -0.1}, r"init_range \(-0.1\) must be above 0"),
        ("attentive-rnn", {"window": 0}, r"window \(0\) must be at least 1"),
        ("attentive-rnn", {"split": "k"}, r"split \('k'\) must be one of none, key-value"),
        ("attentive-rnn", {"score": "sum"}, r"score \('sum'\) must be one of additive"),
        (
            "attentive-rnn",
            {"split": "key-value-predict"},
            r"hidden_size \(200\) must be a multiple of 3",
        ),
        ("gpt2", {"heads": 5}, r"model_size \(768\) must be a multiple of heads \(5\)"),
        ("gpt2", {"norm": "mid"}, r"norm \('mid'\) must be one of pre, post"),
        ("gpt2", {"positions": "none"}, r"positions \('none'\) must be one of learned"),
        ("gpt2", {"activation": "snake"}, r"activation \('snake'\) must be one of relu"),
        ("bert", {"heads": 5}, r"model_size \(768\) must be a multiple of heads \(5\)"),
        ("bert", {"activation": "snake"}, r"activation \('snake'\) must be one of relu"),
        ("bert", {"pooler": False}, r"next_sentence \(True\) needs the pooler \(False\)"),
        ("bahdanau", {"readout_size": 0}, r"readout_size \(0\) must be at least 1"),
        ("lstmn", {"attention_size": 0}, r"attention_size \(0\) must be at least 1"),
        ("lstmn", {"init_range": 0.0}, r"init_range \(0.0\) must be above 0"),
    ],
)
def test_a_config_refuses_what_cannot_work(name, settings, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name].config(vocabulary_size=13, **settings)


@pytest.mark.parametrize(
    ("name", "preset"),
    [(name, preset) for name in NEURAL for preset in getattr(entry(name).config, "presets", {})],
)
def test_every_preset_is_settings_that_its_config_takes(name, preset):
    sizes = {"vocabulary_size": 13, "classes": 3, "inputs": 9, "outputs": 8}
    known = {field.name for field in fields(entry(name).config)}
    given = {key: value for key, value in sizes.items() if key in known}
    settings = entry(name).preset(preset)
    config = entry(name).config(**settings, **given)
    assert {key: getattr(config, key) for key in settings} == settings


def test_a_preset_gives_way_to_settings_said_beside_it():
    model = build("luong", preset="small", vocabulary_size=13, hidden_size=7, embedding_size=7)
    assert (model.config.scope, model.config.layers, model.config.hidden_size) == ("global", 2, 7)


def test_a_preset_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"preset \('hn-avg'\) is not known.*hn-ave"):
        build("han", preset="hn-avg", vocabulary_size=13, classes=3)
