import numpy as np
import pytest

from regard.looking.colours import Scale, luminance, parse_colour, sequential_palette


def oklab_lightness(colours):
    """From sRGB to OKLab's L, by the matrices Ottosson (2020) gives for this way round."""
    shares = colours / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    to_cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    cones = np.cbrt(linear @ to_cones.T)
    return cones @ np.array([0.2104542553, 0.7936177850, -0.0040720468])


def test_equal_steps_of_weight_are_equal_steps_of_lightness():
    lightness = oklab_lightness(sequential_palette()[::25].astype(float))
    steps = np.diff(lightness)
    assert steps == pytest.approx(np.full(len(steps), steps.mean()), abs=0.004)
    assert lightness[0] > 0.97
    assert lightness[-1] < 0.35


def test_the_palette_stays_blue_all_the_way():
    red, green, blue = sequential_palette()[20:].astype(int).T
    assert (blue > green).all()
    assert (green > red).all()


def test_zero_is_the_lightest_colour_and_the_largest_weight_the_deepest():
    scale = Scale.fit([np.array([0.0, 0.2, 0.8])])
    assert (scale.low, scale.high) == (0.0, 0.8)
    assert scale.rgb(0.0) == tuple(sequential_palette()[0])
    assert scale.rgb(0.8) == tuple(sequential_palette()[-1])


def test_negative_numbers_turn_the_scale_round_zero():
    scale = Scale.fit([np.array([-0.5, 0.2])])
    assert (scale.low, scale.high) == (-0.5, 0.5)
    red, _, blue = scale.rgb(-0.5)
    assert red > blue
    red, _, blue = scale.rgb(0.5)
    assert blue > red
    assert scale.rgb(0.0) == Scale(0.0, 1.0).rgb(0.0)


def test_what_is_shown_besides_does_not_stretch_the_scale_and_is_told_at_its_end():
    scale = Scale.fit([np.array([0.1, 0.42])], [np.array([1.0])])
    assert (scale.high, scale.end_labels) == (0.42, ("0", "≥ 0.42"))
    assert scale.rgb(1.0) == scale.rgb(0.42) == tuple(sequential_palette()[-1])
    assert Scale.fit([np.array([0.42])], [np.array([0.3])]).end_labels == ("0", "0.42")
    assert Scale.fit([], [np.array([0.3])]).end_labels == ("0", "0.3")


def test_a_negative_number_shown_besides_is_still_orange():
    scale = Scale.fit([np.array([0.2])], [np.array([-0.5])])
    assert (scale.low, scale.high, scale.end_labels) == (-0.2, 0.2, ("≤ -0.2", "≥ 0.2"))
    red, _, blue = scale.rgb(-0.5)
    assert red > blue


def test_a_map_of_zeros_and_an_empty_one_have_a_scale_too():
    assert Scale.fit([np.zeros(3)]) == Scale.fit([np.zeros(0)]) == Scale(0.0, 1.0)


def test_numbers_on_cells_can_be_read_on_every_shade():
    """A contrast of 4 at least; the guidelines ask 3 of large text and 4.5 of small."""
    scale = Scale(0.0, 1.0)
    for value in np.linspace(0, 1, 60):
        lights = sorted(
            [
                luminance(parse_colour(scale.text_colour(value))),
                luminance(parse_colour(scale.colour(value))),
            ]
        )
        assert (lights[1] + 0.05) / (lights[0] + 0.05) > 4
