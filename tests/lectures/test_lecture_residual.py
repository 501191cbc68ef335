def test_a_block_that_says_nothing_is_the_identity(played):
    numbers = played("residual").numbers
    assert numbers["identity"] == numbers["x"]


def test_a_plain_layer_that_says_nothing_has_lost_everything(played):
    assert played("residual").numbers["plain_layer"] == [0] * 8


def test_fifty_layers_equal_the_shallow_two(played):
    numbers = played("residual").numbers
    assert numbers["layers"] == {"shallow": 2, "deep": 50}
    assert numbers["deep"] == numbers["shallow"] != numbers["x"]
    assert numbers["largest_difference"] == 0


def test_the_gradient_finds_a_road_through_residual_layers_only(played):
    gradient = played("residual").numbers["gradient"]
    assert len(gradient["residual"]) == len(gradient["plain"]) == 51
    assert gradient["residual"][0] > 0.1
    assert gradient["plain"][0] < 1e-9
