"""An episode over time: maps of different heights over the same steps."""

import io

import numpy as np
import pytest
import torch

from regard.attention import Look
from regard.looking import Looks, draw_look
from regard.looking.drawing import Text

STEPS = ["in 0", "mark", "out 0"]


@pytest.fixture
def episode():
    """Inputs of two rows, an output of one that is asked for at the end, weights of five."""
    table, mask = torch.zeros(3, 5, 3), torch.zeros(3, 5, 3, dtype=torch.bool)
    table[2, 4, 2] = 0.5
    mask[0, :2], mask[1, :1, 2], mask[2] = True, True, True
    return Look.of_weights(
        table,
        mask=mask,
        heads=("inputs", "outputs", "weights"),
        queries=[str(row) for row in range(5)],
        keys=STEPS,
        path="episode",
        kind="episode",
    )


def test_each_map_has_its_own_rows_over_the_same_steps(episode):
    inputs, outputs, weights = draw_look(episode).maps
    assert [len(cells.values) for cells in (inputs, outputs, weights)] == [2, 1, 5]
    assert np.diff(inputs.x).tolist() == np.diff(outputs.x).tolist() == np.diff(weights.x).tolist()
    assert inputs.x[0] == weights.x[0] < outputs.x[0]  # two abreast
    assert inputs.y[0] == outputs.y[0] < inputs.y[-1] < weights.y[0]
    assert outputs.hidden.tolist() == [[True, True, False]]


def test_what_is_not_asked_for_is_hatched_and_says_so(episode):
    texts = [mark.text for mark in draw_look(episode).marks if isinstance(mark, Text)]
    assert "not asked for" in texts and "an episode over time · 3 maps · 5 rows × 3 steps" in texts
    printed = io.StringIO()
    Looks([episode]).print(printed, colour=False, width=60)
    assert "· not asked for" in printed.getvalue() and "masked" not in printed.getvalue()


def test_a_narrow_terminal_keeps_the_rows_whose_steps_it_leaves_out():
    printed = io.StringIO()
    steps = [f"in {step}" for step in range(20)]
    late = torch.zeros(2, 3, 20, dtype=torch.bool)
    late[0, 0], late[1, :, 19] = True, True  # the second map shows its three rows at the last step
    look = Look.of_weights(
        torch.zeros(2, 3, 20), mask=late, queries=["0", "1", "2"], keys=steps, kind="episode"
    )
    Looks([look]).print(printed, colour=False, width=20)
    after = printed.getvalue().split("head 1\n")[1].splitlines()
    assert [line.split()[0] for line in after[:3]] == ["0", "1", "2"]


def test_an_episode_is_saved_and_read_again(episode, tmp_path):
    Looks([episode]).save(tmp_path / "episode.json")
    (again,) = Looks.load(tmp_path / "episode.json")
    assert again.kind == "episode" and torch.equal(again.weights, episode.weights)
    Looks([episode]).save(tmp_path / "episode.html")
    assert '"hiddenMeans":"not asked for"' in (tmp_path / "episode.html").read_text()
