"""The scale of colours, one for all renderers.

Lightness falls evenly in OKLab, so equal steps of weight look like equal steps, and the picture
survives a grey printer. Blue for weights; should a number lie below zero, orange on the other side.
Red is for the sentences of a document, whose words are blue.

Ottosson (2020), "A perceptual color space for image processing".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

INK, FAINT, RULE, PAPER = "#1b1f27", "#626a78", "#d5d9e0", "#ffffff"
HATCH_BACKGROUND, HATCH_LINE = "#ececef", "#a3a7b0"
# Distinct also to the colour-blind and in grey; each curve has its own dashes besides.
CURVE_COLOURS = ("#1f5fb4", "#c2570c", "#0f766e", "#a21a5b", "#6b5b00", "#5b3fb0")

LEVELS = 255  # one short of a byte: in an image the last index is the hole of a masked cell
HUES = {"blue": 255.0, "orange": 55.0, "red": 25.0}


@dataclass(frozen=True)
class Scale:
    """From a number to its colour. `low` is 0, or the mirror of `high` when some are negative.

    Numbers beyond its ends have the colour of the end; `clipped` tells that there are such.
    """

    low: float
    high: float
    clipped: bool = False
    hue: str = "blue"

    @classmethod
    def fit(
        cls, numbers: Iterable[Floats], others: Iterable[Floats] = (), hue: str = "blue"
    ) -> "Scale":
        """One scale that holds all these numbers, so that their pictures can be compared.

        The `others` are shown with it but do not stretch it, unless there is nothing else.
        """
        extents = [found for found in map(find_extent, (numbers, others)) if found]
        reaches = [max(abs(lowest), abs(highest)) for lowest, highest in extents]
        # All zero: any scale will do, but not one without a width.
        reach = next(iter(reaches), 0.0) or 1.0
        below = any(lowest < 0 for lowest, _ in extents)
        beyond = max(reaches, default=0.0)
        # What is written alike at the end of the scale is not beyond it.
        clipped = beyond > reach and f"{beyond:.3g}" != f"{reach:.3g}"
        return cls(-reach if below else 0.0, reach, clipped, hue)

    @property
    def end_labels(self) -> tuple[str, str]:
        """What a legend writes at both ends of the scale."""
        low, high = f"{self.low:.3g}", f"{self.high:.3g}"
        if not self.clipped:
            return low, high
        return f"≤ {low}" if self.low < 0 else low, f"≥ {high}"

    def levels(self, values: Floats) -> NDArray[np.uint8]:
        """The index of each value's colour in the palette."""
        share = (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        return np.rint(np.clip(share, 0.0, 1.0) * (LEVELS - 1)).astype(np.uint8)

    @property
    def palette(self) -> NDArray[np.uint8]:  # (level, red green blue)
        """The colour of each level."""
        return diverging_palette() if self.low < 0 else sequential_palette(self.hue)

    def colour(self, value: float) -> str:
        """`#rrggbb` of a value."""
        red, green, blue = self.rgb(value)
        return f"#{red:02x}{green:02x}{blue:02x}"

    def rgb(self, value: float) -> tuple[int, int, int]:
        """Red, green and blue of a value, 0 to 255."""
        red, green, blue = self.palette[int(self.levels(np.array(value)))]
        return int(red), int(green), int(blue)

    def text_colour(self, value: float) -> str:
        """The colour of a number written on its cell: whichever contrasts more."""
        background = luminance(np.array(self.rgb(value)) / 255)
        on_paper = 1.05 / (background + 0.05)
        on_ink = (background + 0.05) / (luminance(parse_colour(INK)) + 0.05)
        return PAPER if on_paper > on_ink else INK


def find_extent(numbers: Iterable[Floats]) -> tuple[float, float] | None:
    """The least and the greatest of all these numbers; None if there are none."""
    parts = [part for part in numbers if part.size]
    if not parts:
        return None
    return min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)


@cache
def sequential_palette(hue: str = "blue") -> NDArray[np.uint8]:
    """From near-white to the hue."""
    return make_ramp(hue, LEVELS)


@cache
def diverging_palette() -> NDArray[np.uint8]:
    """From orange over near-white to blue."""
    half = LEVELS // 2 + 1
    return np.concatenate([make_ramp("orange", half)[:0:-1], make_ramp("blue", half)])


def make_ramp(hue: str, steps: int) -> NDArray[np.uint8]:  # (step, red green blue)
    """Near-white to deep, lightness falling in a straight line."""
    share = np.linspace(0.0, 1.0, steps)
    lightness = 0.975 - 0.665 * share
    # A smooth curve just inside what sRGB can show, for both hues: outside it, clipping would bend
    # the hue, and a corner in it would be seen as an edge in the picture.
    chroma = 0.010 + 0.34 * share * np.exp(-1.65 * share**1.8)
    angle = np.radians(HUES[hue])
    return oklab_to_srgb(lightness, chroma * np.cos(angle), chroma * np.sin(angle))


def oklab_to_srgb(lightness: Floats, a: Floats, b: Floats) -> NDArray[np.uint8]:
    """OKLab to bytes of sRGB."""
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short
    linear = np.clip(np.stack([red, green, blue], axis=-1), 0.0, 1.0)
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(255 * curved).astype(np.uint8)


def luminance(rgb: Floats) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines (2.2) define it."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def parse_colour(colour: str) -> Floats:
    """`#rrggbb` as three shares of one."""
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
