"""A number or a label for each row of a table."""

import json
import random

import pytest
import torch
from click.testing import CliRunner

import regard
from regard.cli import main
from regard.data.batches import Rows
from regard.tasks.resources import check_columns
from regard.tasks.table import SquaredError

RECIPE = """
seed = 1
[task]
kind = "table"
names = ["colour"]
subproblems = [["length"], ["colour"]]
[data]
train = "train.csv"
valid = "valid.csv"
format = "csv"
columns = ["length", "colour", "weight"]
[model]
name = "mlp"
hidden_size = 6
[training]
steps = 300
batch = 16
optimizer = "adam"
rate = 3e-2
schedule = { kind = "cosine" }
evaluate_every = 100
[evaluation]
batch = 20
"""


@pytest.fixture
def recipe(tmp_path):
    """Things whose weight is twice their length, and ten more for red ones."""
    chance = random.Random(1)

    def line(low, high):
        length, colour = chance.uniform(low, high), chance.choice(["red", "green", "blue"])
        weight = 2 * length + 10 * (colour == "red")
        return f"{length:.3f},{colour},x,{weight:.3f},{'heavy' if weight > 50 else 'light'}"

    head = "length,colour,note,weight,class"
    for name, ends, count in (("train", (10, 30), 100), ("valid", (15, 25), 40)):
        lines = [head, *(line(*ends) for _ in range(count))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "things.toml"
    path.write_text(RECIPE)
    return path


def test_numbers_are_learned_saved_and_told_in_their_own_units(recipe, tmp_path):
    run = regard.train(recipe, tmp_path / "run")
    values = run.evaluate()
    assert values["r2"] > 0.99 and values["tokens"] == 40
    assert values["mse"] < 2.0
    (answer,) = run.answers("predict", ["20, red"])
    assert float(answer.output) == pytest.approx(50, abs=3)
    again = regard.load(run.folder)
    assert again.evaluate()["mse"] == values["mse"]
    assert run.evaluate(examples=[(20, "red", answer.output)])["mse"] < 1e-6
    done = CliRunner().invoke(main, ["verify", str(run.folder)])
    assert done.exit_code == 0, done.output


def test_mean_and_deviation_come_from_the_training_rows_alone(recipe, tmp_path):
    run = regard.train(recipe, tmp_path / "run", {"training.steps": 1})
    lines = (tmp_path / "train.csv").read_text().splitlines()[1:]
    lengths = torch.tensor([float(line.split(",")[0]) for line in lines], dtype=torch.double)
    length = json.loads((run.folder / "columns.json").read_text())[0]
    assert length["mean"] == pytest.approx(lengths.mean().item())
    assert length["scale"] == pytest.approx(lengths.std(correction=0).item())
    feed = run.task.scoring_feed(run.task.read("valid"), run.resources)
    assert feed.inputs[:, 0].std() < 0.7  # of lengths from 15 to 25, in units of 10 to 30


def test_labels_are_learned_with_their_probability(recipe, tmp_path):
    changes = {"task.answer": "label", "data.columns": ["length", "colour", "class"]}
    run = regard.train(recipe, tmp_path / "run", changes)
    assert run.evaluate()["accuracy"] > 0.9
    assert run.labels == ("heavy", "light")
    heavy, light = run.answers("predict", ["29,red", "11,green"])
    assert (heavy.output, light.output) == ("heavy", "light")
    assert 0.9 < heavy.score <= 1


def test_hand_made_features_are_saved_with_the_run(recipe, tmp_path):
    changes = {"model.features": "hand-made", "training.steps": 3}
    regard.train(recipe, tmp_path / "run", changes)
    weight = regard.load(tmp_path / "run").model.layers[0].weight
    length, *colours = weight.unbind(dim=1)
    assert (length[0::2] != 0).all() and (length[1::2] == 0).all()
    assert all((colour[0::2] == 0).all() and (colour[1::2] != 0).all() for colour in colours)


def test_a_look_shows_what_each_unit_sees_and_makes_of_a_row(recipe, tmp_path):
    run = regard.train(recipe, tmp_path / "run", {"training.steps": 1})
    hidden, output = run.look("20, red")
    assert [label.text for label in hidden.keys] == [
        *("length", "colour blue", "colour green", "colour red")
    ]
    weight = run.model.layers[0].weight
    row = run.verb("predict").encode("20,red")
    assert torch.equal(hidden.weights, torch.stack([weight, weight * row]).detach())
    assert [label.text for label in output.queries] == ["weight"]
    with pytest.raises(ValueError, match=r"row 1: colour \('rad'\) is not known; did you mean"):
        run.look("20,rad")
    with pytest.raises(ValueError, match="row 1: 1 cells under 2 columns"):
        run.look("20")


def test_the_share_explained_is_worked_out_by_hand():
    class Fixed(torch.nn.Module):
        def forward(self, batch):
            return batch.inputs

    wanted = torch.tensor([1.0, 2.0, 3.0, 6.0])
    batch = Rows(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), wanted)
    objective = SquaredError(Fixed())
    outcome = objective(batch)
    assert outcome.parts["loss"].item() == 4.0 and objective.counts(batch) == {"loss": 4}
    reports = {name: each.value.item() / each.items for name, each in outcome.reports.items()}
    # One error of 2 in four rows; 1, 2, 3, 6 lie 2, 1, 0 and 3 from their mean.
    assert objective.metrics({"loss": 1.0, **reports})["r2"] == pytest.approx(1 - 1 / 3.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            'data.columns=["length", "weigth"]',
            r"csv, line 1: no column 'weigth' among length",
        ),
        ('task.names=["color"]', r"no column 'color' to read; did you mean 'colour'\?"),
        ("task.names=[]", r"train\.csv, line 2: colour \('\w+'\) must be a number"),
        ("data.format=jsonl", r"data\.format \('jsonl'\) is nothing for table"),
        ("data.generator=restaurant", r"makes no table; did you mean 'restaurants'\?"),
        ("model.activation=gelu", r"activation \('gelu'\) must be one of tanh, relu, sigmoid"),
    ],
)
def test_a_recipe_that_does_not_fit_its_table_is_refused(setting, message, recipe, tmp_path):
    with pytest.raises(ValueError, match=message):
        regard.train(recipe, tmp_path / "run", [setting])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "columns.json"),
        ('[{"name": "a", "scale": 0}, {"name": "b"}]', "no number to divide by"),
        ('[{"name": "a"}, {"name": "a"}]', "names a column twice"),
    ],
)
def test_columns_of_a_stranger_are_checked(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        check_columns(json.loads(content), tmp_path / "columns.json")
