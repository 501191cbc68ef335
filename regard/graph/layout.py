"""Where the boxes of a drawing go: rows, an order in each row, coordinates.

Sugiyama, Tagawa & Toda (1981), "Methods for visual understanding of hierarchical system
structures": longest-path rows, barycentres against crossings, then straight lines as far as the
boxes let them. An edge longer than one row passes through a dummy vertex in every row between, so
it never runs behind a box; all edges of one source share these, as one trunk with branches.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

ORDERING_SWEEPS = 12
PLACING_SWEEPS = 100
BOX_GAP = 26.0
ROW_GAP = 46.0
TRUNK_WIDTH = 6.0


@dataclass(eq=False)
class Spot:
    """A place in a row: a box, or a dummy vertex on the edges that start at the box `source`."""

    source: int
    row: int
    width: float
    pull: float  # how much its neighbours follow it
    hold: float  # how little it gives way to others in its row
    is_box: bool = True
    above: list["Spot"] = field(default_factory=list)
    below: list["Spot"] = field(default_factory=list)
    x: float = 0.0  # the middle
    top: float = 0.0
    bottom: float = 0.0


@dataclass(frozen=True)
class Layout:
    """The first spots are the boxes, in the order they were asked for."""

    spots: list[Spot]
    width: float
    height: float


def arrange(reads: Sequence[Sequence[int]], sizes: Sequence[tuple[float, float]]) -> Layout:
    """Place box i, of (width, height) sizes[i], below all the boxes reads[i]; each j < i."""
    trunks = _build_trunks(reads, [width for width, _ in sizes])
    spots = [trunk[0] for trunk in trunks] + [spot for trunk in trunks for spot in trunk[1:]]
    rows = _reduce_crossings(_group_rows(spots))
    _assign_x(rows, trunks)
    left = min(spot.x - spot.width / 2 for spot in spots)
    for spot in spots:
        spot.x -= left
    height = _assign_y(rows, [height for _, height in sizes])
    return Layout(spots, max(spot.x + spot.width / 2 for spot in spots), height)


def _assign_rows(reads: Sequence[Sequence[int]]) -> list[int]:
    """The row of each box: its longest way from a leaf; leaves are right above a first reader."""
    depths: list[int] = []
    for sources in reads:
        depths.append(1 + max((depths[j] for j in sources), default=-1))
    first = [len(reads)] * len(reads)
    for i, sources in enumerate(reads):
        for j in sources:
            first[j] = min(first[j], depths[i])
    for i, sources in enumerate(reads):
        if not sources and first[i] < len(reads):
            depths[i] = first[i] - 1
    return depths


def _build_trunks(reads: Sequence[Sequence[int]], widths: Sequence[float]) -> list[list[Spot]]:
    """For each box the trunk that starts at it: the box, then a dummy vertex a row."""
    depths = _assign_rows(reads)
    # Leaves follow what is computed, so that a chain of computations comes out straight.
    pulls = [1.0 if sources else 0.05 for sources in reads]
    boxes = [Spot(i, depths[i], widths[i], pulls[i], pulls[i]) for i in range(len(reads))]
    trunks = [[box] for box in boxes]
    for i, sources in enumerate(reads):
        for j in sources:
            while trunks[j][-1].row < depths[i] - 1:
                end = trunks[j][-1]
                trunks[j].append(Spot(j, end.row + 1, TRUNK_WIDTH, pulls[j], 3.0, is_box=False))
                _link(end, trunks[j][-1])
            _link(trunks[j][depths[i] - 1 - depths[j]], boxes[i])
    return trunks


def _link(above: Spot, below: Spot) -> None:
    """Make two spots neighbours."""
    above.below.append(below)
    below.above.append(above)


def _group_rows(spots: Sequence[Spot]) -> list[list[Spot]]:
    """The spots of each row, in the order of their sources."""
    rows: list[list[Spot]] = [[] for _ in range(1 + max(spot.row for spot in spots))]
    for spot in sorted(spots, key=lambda spot: spot.source):
        rows[spot.row].append(spot)
    return rows


def _reduce_crossings(rows: list[list[Spot]]) -> list[list[Spot]]:
    """Sort each row by the mean place of its neighbours above, then below, and so on."""
    best, fewest = rows, _count_crossings(rows)
    for sweep in range(ORDERING_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        for i in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            place = {spot: at for at, spot in enumerate(rows[i - 1 if down else i + 1])}
            centres = {
                spot: _mean([place[other] for other in (spot.above if down else spot.below)], at)
                for at, spot in enumerate(rows[i])
            }
            rows[i].sort(key=centres.__getitem__)
        if (crossings := _count_crossings(rows)) < fewest:
            best, fewest = rows, crossings
    return best


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _count_crossings(rows: Sequence[Sequence[Spot]]) -> int:
    """How many edges cross: two between the same rows whose ends are ordered differently."""
    crossings = 0
    for row, lower in pairwise(rows):
        place = {spot: at for at, spot in enumerate(lower)}
        ends: list[int] = []  # lower ends of the edges so far, sorted
        for spot in row:
            new_ends = [place[other] for other in spot.below]
            crossings += sum(len(ends) - bisect_right(ends, end) for end in new_ends)
            for end in new_ends:
                insort(ends, end)
    return crossings


def _assign_x(rows: Sequence[list[Spot]], trunks: Sequence[Sequence[Spot]]) -> None:
    """Pull every spot towards its neighbours, again and again, from above and from below."""
    for row in rows:
        _place_row(row, [0.0] * len(row))
    for sweep in range(PLACING_SWEEPS):
        lines = [_trunk_x(trunk) for trunk in trunks]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _place_row(row, [_barycentre(s) if s.is_box else lines[s.source] for s in row])


def _trunk_x(trunk: Sequence[Spot]) -> float:
    """The x on which a trunk would stand upright: between where it runs and where it leads."""
    spots = [*trunk, *(below for spot in trunk for below in spot.below)]
    return sum(spot.x for spot in spots) / len(spots)


def _barycentre(spot: Spot) -> float:
    """The middle of the neighbours, some of which pull more than others."""
    neighbours = spot.above + spot.below
    if not neighbours:
        return spot.x
    pulls = [other.pull for other in neighbours]
    return sum(other.x * pull for other, pull in zip(neighbours, pulls, strict=True)) / sum(pulls)


def _place_row(row: Sequence[Spot], targets: Sequence[float]) -> None:
    """Set the x of each spot as near to its target as the others let it."""
    distances = [(a.width + b.width) / 2 + BOX_GAP for a, b in pairwise(row)]
    for spot, x in zip(
        row, fit_positions(targets, distances, [spot.hold for spot in row]), strict=True
    ):
        spot.x = x


def fit_positions(
    targets: Sequence[float], distances: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """Positions nearest to the targets that keep the order and the distances between neighbours.

    With the distances taken off, this is isotonic regression: whoever would overlap moves as one
    block, to the weighted mean of its targets (pool adjacent violators).
    """
    offsets = [0.0, *accumulate(distances)]
    blocks: list[tuple[float, float, int]] = []  # (mean target, weight, how many)
    for target, offset, weight in zip(targets, offsets, weights, strict=True):
        mean, size = target - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other_mean, other_weight, other_size = blocks.pop()
            mean = (mean * weight + other_mean * other_weight) / (weight + other_weight)
            weight, size = weight + other_weight, size + other_size
        blocks.append((mean, weight, size))
    means = [mean for mean, _, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _assign_y(rows: Sequence[Sequence[Spot]], heights: Sequence[float]) -> float:
    """Rows below each other, each as high as its highest box, boxes in the middle."""
    y = 0.0
    for row in rows:
        height = max(heights[spot.source] for spot in row if spot.is_box)
        for spot in row:
            slack = (height - heights[spot.source]) / 2 if spot.is_box else 0.0
            spot.top, spot.bottom = y + slack, y + height - slack
        y += height + ROW_GAP
    return y - ROW_GAP
