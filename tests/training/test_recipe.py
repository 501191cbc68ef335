"""Recipes say what is wrong in the words of the recipe."""

import pytest

from regard.training.recipe import read_recipe
from regard.training.shipped import SHIPPED, find_recipe
from regard.training.toml import to_toml


@pytest.mark.parametrize("name", [path.stem for path in sorted(SHIPPED.glob("*.toml"))])
def test_every_shipped_recipe_is_sound_and_says_what_to_expect(name):
    recipe = read_recipe(name)
    assert recipe.evaluation.expected
    assert recipe.evaluation.minutes
    assert recipe.evaluation.memory_mb


def test_an_unknown_key_is_named_with_its_path_and_the_nearest(written):
    with pytest.raises(ValueError, match=r"unknown key training.stepps; did you mean 'steps'\?"):
        read_recipe(str(written("lstm")), ["training.stepps=3"])


def test_an_unknown_section_is_named(written):
    with pytest.raises(ValueError, match=r"unknown key trainig; did you mean 'training'\?"):
        read_recipe(str(written("lstm")), ["trainig.steps=3"])


def test_a_value_of_the_wrong_kind_is_named(written):
    with pytest.raises(ValueError, match=r"training.steps \('many'\)"):
        read_recipe(str(written("lstm")), ["training.steps=many"])


def test_a_value_out_of_range_is_named(written):
    with pytest.raises(ValueError, match=r"batch \(0\) must be 1 or more"):
        read_recipe(str(written("lstm")), ["training.batch=0"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.rate=-1", r"training: rate \(-1.0\) must be 0 or more"),
        ("training.evaluate_every=0", r"training: evaluate_every \(0\) must be 1 or more"),
        ("training.ema=1.0", r"training: ema \(1.0\) must be at least 0 and below 1"),
        ("model.hidden_size=many", r"model.hidden_size \('many'\): .* valid integer"),
        ("model.hidden_size=2.5", r"model.hidden_size \(2.5\): .* valid integer"),
        ("model.dropout=high", r"model.dropout \('high'\): .* valid number"),
        ("model.layers=true", r"lstm.toml: model.layers \(true\) must not be true or false"),
        ("training.steps=true", r"lstm.toml: training.steps \(true\) must not be"),
        ("training.schedule.warmup=false", r"training.schedule.warmup \(false\) must not be"),
        ("seed=1e30", r"seed"),
        ("seed=-1", r"seed \(-1\) must be 0 or more and below"),
        ("seed=9223372036854775808", r"9223372036854775808 has more than the 64 bits"),
        (
            "model.name=bahdanau",
            r"'bahdanau'\) does translation, and task.kind is 'language-model'",
        ),
        ("model.name=3", r"lstm.toml: model.name \(3\) must be a string"),
        ("model.name=rnm", r"model \('rnm'\) is not known; did you mean 'rnn'\?"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_any_text_is_read(setting, message, written):
    with pytest.raises(ValueError, match=message):
        read_recipe(str(written("lstm")), [setting])


def test_a_missing_section_is_named(tmp_path):
    path = tmp_path / "empty.toml"
    path.write_text("seed = 1\n")
    with pytest.raises(ValueError, match="task is missing"):
        read_recipe(str(path))


def test_a_file_that_is_not_toml_is_named(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("seed = = 1\n")
    with pytest.raises(ValueError, match=r"broken\.toml is not TOML"):
        read_recipe(str(path))


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean 'ptb-kn5'"):
        find_recipe("ptb-kn4")


def test_a_missing_data_file_names_the_set_and_the_folder(written, tmp_path, monkeypatch):
    from regard.training.train import train

    monkeypatch.delenv("REGARD_DATA", raising=False)
    path = written("lstm")
    path.write_text(path.read_text().replace("train.txt", "absent.txt"))
    settings = ["data.set=Absent Corpus", "data.source=its authors"]
    with pytest.raises(ValueError) as told:
        train(str(path), tmp_path / "run", settings)
    looked = f"absent.txt (Absent Corpus) is missing: looked for {tmp_path / 'absent.txt'}"
    assert looked in str(told.value)
    assert "its authors" in str(told.value)


def test_nobody_is_told_to_put_data_into_the_package(tmp_path, monkeypatch):
    from regard.training.train import train

    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as told:
        train("ptb-kn5", tmp_path / "run")
    assert str(SHIPPED) not in str(told.value)
    assert f"looked for {tmp_path / 'ptb' / 'ptb.train.txt.gz'}" in str(told.value)
    assert "$REGARD_DATA" in str(told.value)


def test_a_path_that_is_typed_is_relative_to_where_one_is(written, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    recipe = read_recipe(
        str(written("lstm")), ["data.train=mine.txt", "data.valid=/else/where.txt", "data.test=-"]
    )
    assert recipe.data.train == str(tmp_path / "here" / "mine.txt")
    assert recipe.data.valid == "/else/where.txt"
    assert recipe.data.test == "-"
    pair = read_recipe(str(written("lstm")), ['data.train=["a.en", "b/a.de"]'])
    assert pair.data.train == [str(tmp_path / "here" / name) for name in ("a.en", "b/a.de")]


@pytest.mark.parametrize(("one", "other"), [("steps", "epochs"), ("epochs", "steps")])
def test_a_length_in_steps_replaces_one_in_epochs_and_back(one, other, written):
    path = written("lstm")
    path.write_text(path.read_text().replace("steps = 12", f"{other} = 3"))
    training = read_recipe(str(path), [f"training.{one}=20"]).training
    assert (getattr(training, one), getattr(training, other)) == (20, None)


def test_both_lengths_at_once_are_refused(written):
    with pytest.raises(ValueError, match="one of epochs and steps"):
        read_recipe(str(written("lstm")), ["training.steps=20", "training.epochs=2"])


def test_what_is_written_as_toml_is_read_back(written, tmp_path):
    import dataclasses

    recipe = read_recipe(str(written("transformer")), ['name="a \\"b\\" é"'])
    (tmp_path / "again.toml").write_text(to_toml(dataclasses.asdict(recipe)))
    assert read_recipe(str(tmp_path / "again.toml")) == recipe


@pytest.mark.parametrize(
    "line",
    ["x = " + "[" * 5_000, "model.layers" + ".a" * 500 + " = 1", "name = " + "[" * 300 + "]" * 300],
)
def test_a_recipe_nested_too_deeply_is_refused_in_one_line(line, tmp_path):
    (tmp_path / "deep.toml").write_text(line)
    with pytest.raises(ValueError, match=r"deep\.toml is nested too deeply") as told:
        read_recipe(str(tmp_path / "deep.toml"))
    assert "\n" not in str(told.value)


def test_a_setting_nested_too_deeply_is_refused_in_one_line(written):
    with pytest.raises(ValueError, match="--set seed: the value is nested too deeply"):
        read_recipe(str(written("lstm")), ["seed=" + "[" * 5_000])


def test_a_recipe_as_long_as_a_book_is_not_read(tmp_path):
    """A key of half a million dots would keep tomllib busy for an hour."""
    (tmp_path / "long.toml").write_text("a" + ".a" * (1 << 19) + " = 1")
    with pytest.raises(ValueError, match=r"long\.toml has 1\.0 MB, and regard reads up to"):
        read_recipe(str(tmp_path / "long.toml"))


def test_a_recipe_that_could_not_be_read_again_is_refused_before_it_is_trained(written, tmp_path):
    from regard.training.train import train

    many = ["training.probes=" + str(["the cat"] * 10_000)]
    with pytest.raises(ValueError, match=r"run/recipe\.toml has [\d,]+ bytes, and regard reads up"):
        train(str(written("lstm")), tmp_path / "run", many)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("setting", ["seed=9223372036854775808", "model.layers=" + "9" * 4000])
def test_a_number_that_torch_does_not_have_is_refused(setting, written):
    with pytest.raises(ValueError, match="more than the 64 bits of a whole number") as told:
        read_recipe(str(written("lstm")), [setting])
    assert len(str(told.value)) < 500


def test_a_value_as_long_as_a_page_is_shown_in_part(written):
    with pytest.raises(ValueError, match=r"training.steps \('aaa") as told:
        read_recipe(str(written("lstm")), ["training.steps=" + "a" * 9_999])
    assert len(str(told.value)) < 500


def test_a_preset_is_spelled_out_and_gives_way_to_what_is_written():
    settings = ["model.preset=small", "model.dropout=0.25", "model.tied=false"]
    model = read_recipe("numbers-luong", settings).model
    assert "preset" not in model
    assert (model["tied"], model["dropout"], model["layers"]) == (False, 0.25, 1)


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("smal", r"model\.preset \('smal'\) is not known.*'small'"),
        ("7", r"model\.preset \(7\)"),
    ],
)
def test_a_preset_that_cannot_be_is_named(preset, message):
    with pytest.raises(ValueError, match=message):
        read_recipe("numbers-luong", [f"model.preset={preset}"])
