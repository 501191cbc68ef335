from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from regard.graph.layout import BOX_GAP, arrange, fit_positions


@st.composite
def graphs(draw):
    """For every box the boxes it reads, all of them before it."""
    size = draw(st.integers(1, 24))
    reads = [
        draw(st.lists(st.integers(0, max(i - 1, 0)), max_size=3)) if i else [] for i in range(size)
    ]
    widths = draw(st.lists(st.integers(20, 200), min_size=size, max_size=size))
    return reads, [(float(width), 60.0) for width in widths]


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_no_box_overlaps_another_and_every_box_is_below_what_it_reads(graph):
    reads, sizes = graph
    layout = arrange(reads, sizes)
    boxes = layout.spots[: len(reads)]
    for box, sources in zip(boxes, reads, strict=True):
        assert box.x - box.width / 2 >= -1e-6
        assert box.x + box.width / 2 <= layout.width + 1e-6
        assert box.bottom <= layout.height + 1e-6
        assert all(boxes[source].bottom < box.top for source in sources)
    rows = {}
    for spot in layout.spots:
        rows.setdefault(spot.row, []).append(spot)
    for row in rows.values():
        row.sort(key=lambda spot: spot.x)
        for left, right in pairwise(row):
            gap = right.x - left.x - (left.width + right.width) / 2
            assert gap >= BOX_GAP - 1e-6


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_every_edge_is_a_way_from_row_to_row(graph):
    reads, sizes = graph
    boxes = arrange(reads, sizes).spots[: len(reads)]
    for box, sources in zip(boxes, reads, strict=True):
        assert sorted(spot.source for spot in box.above) == sorted(sources)
        for spot in box.above:
            while not spot.is_box:
                (above,) = spot.above
                assert above.row == spot.row - 1
                spot = above
            assert spot is boxes[spot.source]


def test_a_leaf_stands_right_above_its_first_reader():
    #    0 → 1 → 2 → 4,  3 → 4
    boxes = arrange([[], [0], [1], [], [2, 3]], [(40.0, 20.0)] * 5).spots
    assert [box.row for box in boxes] == [0, 1, 2, 2, 3]


def test_crossings_that_need_not_be_are_gone():
    # 2 reads 1 and 3 reads 0: as they come the two edges cross.
    boxes = arrange([[], [], [1], [0], [2, 3]], [(40.0, 20.0)] * 5).spots
    assert (boxes[0].x < boxes[1].x) == (boxes[3].x < boxes[2].x)


def test_a_chain_hangs_straight_down():
    boxes = arrange([[], [0], [1], [2]], [(40.0, 20.0), (90.0, 20.0), (10.0, 20.0), (60.0, 20.0)])
    assert_allclose([box.x for box in boxes.spots], 45.0)


def test_wishes_that_can_be_met_are_met():
    assert fit_positions([0.0, 10.0, 30.0], [5.0, 5.0], [1.0, 1.0, 1.0]) == [0.0, 10.0, 30.0]


def test_two_who_want_one_place_give_way_by_their_weight():
    assert_allclose(fit_positions([0.0, 0.0], [8.0], [1.0, 1.0]), [-4.0, 4.0])
    assert_allclose(fit_positions([0.0, 0.0], [8.0], [3.0, 1.0]), [-2.0, 6.0])
