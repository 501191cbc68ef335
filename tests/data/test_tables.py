"""Tables of numbers: what is read from them, and what is said of bad ones."""

import pytest
import torch
from torch.testing import assert_close

from regard.data.restaurants import (
    CHANCE,
    WALKABLE,
    Restaurant,
    expected_popularity,
    hidden_features,
    make_restaurants,
)
from regard.data.tables import RowFeed, encode_inputs, learn_column, make_table, read_table

GOOD = "price,wine,stars\n10,yes,3\n30,no,5\n"


def write(folder, content):
    (folder / "places.csv").write_text(content)
    return folder / "places.csv"


def test_columns_are_chosen_by_name_and_come_in_the_order_asked_for(tmp_path):
    table = read_table(write(tmp_path, GOOD), "csv", ["stars", "price"])
    assert table.columns == ("stars", "price")
    assert table.rows == (("3", "10"), ("5", "30"))
    assert read_table(write(tmp_path, GOOD), "csv", None).columns == ("price", "wine", "stars")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"places\.csv is empty"),
        ("price,stars\n", r"places\.csv has no rows beside the names of its columns"),
        ("price,wine\n1,yes\n", r"places\.csv, line 1: no column 'stars' among price, wine"),
        ("price,stars\n1,2\n\n3\n", r"places\.csv, line 4: 1 cells under 2 columns"),
        ("price,stars\n1,2,9\n", r"places\.csv, line 2: 3 cells under 2 columns"),
        ("price,stars,price\n1,2,3\n", r"line 1: two columns have one name: price, stars, price"),
    ],
)
def test_a_bad_table_is_told_with_its_line(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, content), "csv", ["price", "stars"])


@pytest.mark.parametrize("cell", ["cheap", "", "nan", "inf"])
def test_a_cell_that_is_no_number_is_told_with_its_line(cell, tmp_path):
    table = read_table(write(tmp_path, f"price,stars\n1,2\n{cell},3\n"), "csv", None)
    with pytest.raises(ValueError, match=rf"line 3: price \('{cell}'\) must be a number"):
        learn_column(table, "price", named=False)


def test_numbers_are_standardised_and_names_have_an_input_each():
    rows = [(1, "no", "a"), (3, "yes", "b"), (5, "no", "c"), (7, "yes", "c")]
    table = make_table(["price", "wine", "zip"], rows, "row")
    columns = [learn_column(table, name, name != "price") for name in table.columns]
    assert [name for column in columns for name in column.inputs] == [
        *("price", "wine yes", "zip a", "zip b", "zip c")
    ]
    deviation = 5**0.5  # of 1, 3, 5, 7 around 4
    expected = torch.tensor(
        [
            [-3 / deviation, 0, 1, 0, 0],
            [-1 / deviation, 1, 0, 1, 0],
            [1 / deviation, 0, 0, 0, 1],
            [3 / deviation, 1, 0, 0, 1],
        ]
    )
    assert_close(encode_inputs(table, columns), expected)


def test_a_name_that_training_has_not_seen_is_refused_with_the_nearest():
    column = learn_column(make_table(["zip"], [["10001"], ["10002"]], "row"), "zip", named=True)
    with pytest.raises(ValueError, match=r"row 1: zip \('1001'\) is not known; did you mean"):
        encode_inputs(make_table(["zip"], [["1001"]], "row"), [column])


def test_every_row_comes_once_an_epoch_in_an_order_of_its_seed():
    feed = RowFeed(torch.arange(7.0)[:, None], torch.arange(7.0), batch=3, seed=5)
    epochs = [[feed.batch(epoch, i).targets for i in range(3)] for epoch in (0, 0, 1)]
    orders = [torch.cat(batches).tolist() for batches in epochs]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(7))


def test_popularity_follows_the_rule():
    place = Restaurant(30, 30, "no", "10004", 50, 100, 0.0)
    assert hidden_features(place) == {"food quality": 0.5, "walkable": 0.3, "noise": 0.5}
    assert expected_popularity(place) == pytest.approx(20 + 40 * 0.5 + 30 * 0.3 - 25 * 0.5)
    better = place._replace(dishes=20, wine="yes")  # 0.15 · 10 + 2
    assert hidden_features(better)["food quality"] == pytest.approx(0.970688, abs=1e-6)
    louder = place._replace(seats=60)
    assert hidden_features(louder)["noise"] == pytest.approx(0.817574, abs=1e-6)


def test_restaurants_depend_on_seed_split_and_place_alone():
    places = make_restaurants(400, 1, "train")
    assert places[:3] == make_restaurants(3, 1, "train")
    assert places[:3] != make_restaurants(3, 2, "train")
    assert places[:3] != make_restaurants(3, 1, "valid")
    assert {place.zip for place in places} == set(WALKABLE)
    chance = torch.tensor([place.popularity - expected_popularity(place) for place in places])
    assert abs(chance.mean()) < 0.4 and chance.std() == pytest.approx(CHANCE, rel=0.1)
