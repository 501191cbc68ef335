"""Positions: by loops, by complex numbers, and by the tables of their papers."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import (
    ALiBi,
    Attention,
    Causal,
    Dot,
    KeyValueCache,
    LearnedPositions,
    MultiHead,
    Prefix,
    RelativeBias,
    Rotary,
    Sinusoidal,
    sinusoids,
)


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_four_dimensions_are_the_lectures_four_waves():
    for place in (0, 1, 2, 50):
        expected = [
            math.sin(place),
            math.cos(place),
            math.sin(place / 100),
            math.cos(place / 100),
        ]
        assert sinusoids(torch.tensor([place]), 4)[0].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [2, 5, 8, 13])
def test_every_pair_of_dimensions_is_a_slower_wave(size):
    table = sinusoids(torch.arange(17), size)
    assert table.shape == (17, size)
    for place in range(17):
        for i in range(size):
            angle = place / 10000 ** ((i - i % 2) / size)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert float(table[place, i]) == pytest.approx(expected, abs=1e-6)


def test_far_positions_lose_no_digits():
    place = 100_003
    table = sinusoids(torch.tensor([place]), 2)
    assert table[0].tolist() == pytest.approx([math.sin(place), math.cos(place)], abs=1e-6)


def test_sinusoidal_positions_are_added_from_where_one_stands():
    add = Sinusoidal(6)
    x = torch.randn(2, 11, 6)
    whole = add(x)
    assert_close(whole, x + sinusoids(torch.arange(11), 6))
    assert_close(add(x[:, 4:], start=4), whole[:, 4:])
    assert_close(Sinusoidal(6)(x[:, 4:], start=4), whole[:, 4:])


def test_sinusoidal_positions_grow_with_what_is_asked_and_are_not_saved():
    add = Sinusoidal(6)
    add(torch.randn(1, 3, 6))
    for length in (4, 29):  # one more, and many
        far = add(torch.zeros(1, length, 6))
        assert_close(far[0], sinusoids(torch.arange(length), 6))
    assert not add.state_dict()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sinusoidal_positions_take_the_precision_of_the_vectors(dtype):
    assert Sinusoidal(6)(torch.zeros(1, 3, 6, dtype=dtype)).dtype == dtype


def test_vectors_of_changing_precision_do_not_make_the_table_grow():
    add = Sinusoidal(6)
    for _ in range(10):
        for dtype in (torch.float32, torch.bfloat16):
            assert add(torch.zeros(1, 11, 6, dtype=dtype)).dtype == dtype
    assert add.table.shape[0] < 100


def test_sinusoidal_positions_have_the_digits_of_double_precision():
    added = Sinusoidal(2).double()(torch.zeros(1, 4, 2, dtype=torch.float64))
    assert added[0, 3].tolist() == pytest.approx([math.sin(3), math.cos(3)], abs=1e-14)


def test_a_size_of_nothing_has_no_waves():
    with pytest.raises(ValueError, match=r"model_size \(0\) must be 1 or more"):
        Sinusoidal(0)


def test_learned_positions_are_rows_of_a_table():
    learned = LearnedPositions(11, 5)
    x = torch.randn(2, 7, 5)
    assert_close(learned(x), x + learned.table[:7])
    assert_close(learned(x, start=4), x + learned.table[4:11])
    learned(x, start=4).sum().backward()
    assert learned.table.grad[:4].eq(0).all()
    assert learned.table.grad[4:].eq(2).all()


def test_learned_positions_end_somewhere():
    message = r"positions 5 … 11 were asked for, but this model knows 11 \(longest\)"
    with pytest.raises(ValueError, match=message):
        LearnedPositions(11, 5)(torch.randn(2, 7, 5), start=5)


@pytest.mark.parametrize("make", [Sinusoidal, lambda size: LearnedPositions(11, size)])
@pytest.mark.parametrize("size", [1, 5])
def test_positions_are_added_to_vectors_of_their_own_size(make, size):
    with pytest.raises(ValueError, match=rf"vectors \(2, 7, 3\) must be \(…, position, {size}\)"):
        make(size)(torch.randn(2, 7, 3))


@pytest.mark.parametrize("make", [Sinusoidal, lambda size: LearnedPositions(11, size)])
def test_nothing_stands_before_the_start(make):
    with pytest.raises(ValueError, match=r"start \(-1\) must be 0 or more"):
        make(5)(torch.randn(2, 7, 5), start=-1)


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotary_turns_each_pair_as_a_complex_number(base):
    size, places = 6, torch.tensor([0, 1, 5, 977])
    x = numbers(2, 3, 4, size)
    turned = Rotary(size, base=base, interleaved=True)(x, places)
    for p, place in enumerate(places.tolist()):
        for i in range(size // 2):
            turn = complex(math.cos(place * base ** (-2 * i / size)), 0) + 1j * math.sin(
                place * base ** (-2 * i / size)
            )
            point = torch.complex(x[:, :, p, 2 * i], x[:, :, p, 2 * i + 1]) * turn
            assert_close(turned[:, :, p, 2 * i], point.real)
            assert_close(turned[:, :, p, 2 * i + 1], point.imag)


def test_rotary_by_halves_is_rotary_in_pairs_with_the_dimensions_reordered():
    x, places = numbers(2, 3, 7, 10), torch.arange(7)
    halves = torch.cat([torch.arange(0, 10, 2), torch.arange(1, 10, 2)])  # pairs → halves
    in_pairs = Rotary(10, interleaved=True)(x, places)
    by_halves = Rotary(10)(x[..., halves], places)
    assert_close(by_halves, in_pairs[..., halves])


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_scores_depend_on_the_distance_alone(interleaved):
    rotary = Rotary(8, interleaved=interleaved)
    q, k = numbers(1, 8), numbers(1, 8)
    scores = [
        rotary(q, torch.tensor([m])) @ rotary(k, torch.tensor([m + 3])).T for m in (0, 1, 17, 1000)
    ]
    for score in scores[1:]:
        assert_close(score, scores[0])
    assert not torch.allclose(
        rotary(q, torch.tensor([0])) @ rotary(k, torch.tensor([4])).T, scores[0]
    )


def test_rotary_keeps_every_length_and_leaves_the_start_alone():
    x = numbers(2, 7, 8)
    turned = Rotary(8)(x, torch.arange(7))
    assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, 0], x[:, 0])


def test_rotary_takes_positions_of_each_row():
    x, places = numbers(2, 3, 5, 8), torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    turned = Rotary(8)(x, places.unsqueeze(1))
    for row in range(2):
        assert_close(turned[row], Rotary(8)(x[row], places[row]))


def test_rotary_angles_are_exact_in_a_half_precision_model():
    places, x = torch.tensor([1000]), torch.randn(1, 64)
    exact = Rotary(64)(x.double(), places)
    assert_close(Rotary(64).to(torch.bfloat16)(x, places).double(), exact, atol=1e-5, rtol=0)


def test_rotary_needs_pairs():
    with pytest.raises(ValueError, match=r"head_size \(7\) must be even: rotary turns pairs"):
        Rotary(7)


def test_alibi_slopes_for_eight_heads_are_halves_of_halves():
    assert ALiBi(8).slopes.tolist() == [
        1 / 2,
        1 / 4,
        1 / 8,
        1 / 16,
        1 / 32,
        1 / 64,
        1 / 128,
        1 / 256,
    ]


def test_alibi_slopes_for_sixteen_heads_start_at_the_root_of_a_half():
    expected = [2 ** (-0.5 * (i + 1)) for i in range(16)]
    assert ALiBi(16).slopes.tolist() == pytest.approx(expected)


def test_alibi_slopes_for_twelve_heads_fill_in_from_sixteen():
    of_eight = [1 / 2**i for i in range(1, 9)]
    of_sixteen = [2 ** (-0.5 * (i + 1)) for i in range(16)]
    assert ALiBi(12).slopes.tolist() == pytest.approx(of_eight + of_sixteen[0:8:2])


@pytest.mark.parametrize("queries, keys", [(5, 5), (2, 7), (7, 2), (1, 5)])
def test_alibi_takes_away_the_slope_for_each_step_of_distance(queries, keys):
    table = ALiBi(8)(queries, keys).table()
    assert table.shape == (8, queries, keys)
    for h in range(8):
        for i in range(queries):
            for j in range(keys):
                distance = abs(j - (i + keys - queries))
                assert float(table[h, i, j]) == -distance / 2 ** (h + 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_alibi_tells_far_distances_apart_in_half_precision(dtype):
    table = ALiBi(8).to(dtype)(1, 70_001).table()  # (head, query, key)
    for distance in (255, 256, 257, 1_000, 1_001, 4_097, 70_000):
        expected = [-distance / 2 ** (h + 1) for h in range(8)]
        assert table[:, 0, 70_000 - distance].tolist() == expected


@pytest.mark.parametrize("place", [1_001, 4_097])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("autocast", [False, True], ids=["half", "autocast"])
def test_far_keys_under_alibi_are_weighed_by_their_own_distances(autocast, dtype, place):
    """Three keys at the beginning, seen from far away: their bias differs by one slope each."""
    slopes = [1 / 4, 1 / 16, 1 / 64, 1 / 256]
    keys = torch.zeros(1, 4, place, 4).to(torch.float32 if autocast else dtype)
    values = keys.clone()
    values[:, :, :3, :3] = torch.eye(3).to(values.dtype)
    bias = ALiBi(4).to(values.dtype)(1, place)
    with torch.autocast("cpu", dtype, enabled=autocast):
        read = Attention(Dot())(keys[:, :, :1], keys, values, Prefix(torch.tensor([3])), bias=bias)
    assert read.context.dtype == dtype
    near = torch.finfo(dtype).eps
    for head, slope in enumerate(slopes):
        odds = [math.exp(slope * step) for step in range(3)]
        expected = [part / sum(odds) for part in odds]
        assert read.context[0, head, 0, :3].tolist() == pytest.approx(expected, abs=near)
        assert read.weights[0, head, 0, :3].tolist() == pytest.approx(expected, abs=near)


@pytest.mark.parametrize("place", [4_097, 65_521])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_far_positions_are_told_apart_in_half_precision(dtype, place):
    expected = [math.sin(place), math.cos(place)]
    near = torch.finfo(dtype).eps
    turned = Rotary(2)(torch.tensor([[0.0, -1.0]], dtype=dtype), torch.tensor([place]))
    assert turned[0].tolist() == pytest.approx([expected[0], -expected[1]], abs=near)
    with torch.autocast("cpu", dtype):
        added = Sinusoidal(2).to(dtype)(torch.zeros(1, 1, 2, dtype=dtype), start=place)
    assert added[0, 0].tolist() == pytest.approx(expected, abs=near)
    position = RelativeBias(3, buckets=32, farthest=8_192).to(dtype)
    with torch.autocast("cpu", dtype):
        far = torch.tensor([-4_097, -1_001, -257])
        actual = position.bucket(far).tolist()
    assert actual == [bucket_by_hand(d, 32, 8_192, True) for d in far.tolist()]


def test_a_bias_is_made_for_the_rows_and_heads_asked_for():
    bias = RelativeBias(5)(3, 11)
    whole = bias.table()
    assert torch.equal(bias.rows(torch.tensor([2, 0])).table(), whole[:, [2, 0]])
    assert torch.equal(bias.heads(torch.tensor([4, 1])).table(), whole[[4, 1]])


def bucket_by_hand(distance, buckets, farthest, bidirectional):
    """Raffel et al. (2020): exact below the middle, then logarithmic, in whole numbers only.

    The far bucket is the largest t with (away / near)^far ≥ (farthest / near)^t.
    """
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
    away = abs(distance) if bidirectional else max(-distance, 0)
    near = buckets // 2
    if away < near:
        return first + away
    far, step = buckets - near, 0
    while step + 1 < far and away**far * near ** (step + 1) >= farthest ** (step + 1) * near**far:
        step += 1
    return first + near + step


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("buckets, farthest", [(32, 128), (32, 100), (8, 20), (4, 3), (64, 256)])
def test_distances_fall_into_the_buckets_of_the_paper(buckets, farthest, bidirectional):
    position = RelativeBias(3, buckets, farthest, bidirectional)
    distances = range(-2 * farthest, 2 * farthest + 1)
    expected = [bucket_by_hand(d, buckets, farthest, bidirectional) for d in distances]
    assert position.bucket(torch.tensor(list(distances))).tolist() == expected


def test_t5_buckets_that_can_be_read_off():
    position = RelativeBias(3)  # 32 buckets, 128 far, both ways
    actual = position.bucket(torch.tensor([0, -1, -7, -8, 1, 7, 8, -127, -128, -1000, 1000]))
    assert actual.tolist() == [0, 1, 7, 8, 17, 23, 24, 15, 15, 15, 31]


def test_a_relative_bias_adds_the_number_of_its_bucket():
    position = RelativeBias(3, buckets=8, farthest=20)
    table = position(5, 7).table()
    for i in range(5):
        for j in range(7):
            bucket = bucket_by_hand(j - (i + 2), 8, 20, True)
            assert torch.equal(table[:, i, j], position.table[bucket])


def test_every_bucket_met_learns():
    position = RelativeBias(3, buckets=8, farthest=20)
    position(7, 7).table().sum().backward()
    counts = torch.zeros(8)
    for i in range(7):
        for j in range(7):
            counts[bucket_by_hand(j - i, 8, 20, True)] += 1
    assert_close(position.table.grad, counts.unsqueeze(-1).expand(8, 3))


def test_biases_refuse_what_cannot_work():
    with pytest.raises(ValueError, match=r"heads \(0\) must be 1 or more"):
        ALiBi(0)
    with pytest.raises(ValueError, match=r"buckets \(7\) must be an even number, 4 or more"):
        RelativeBias(3, buckets=7)
    with pytest.raises(ValueError, match=r"farthest \(16\) must be above half of buckets \(32\)"):
        RelativeBias(3, farthest=16)


@pytest.mark.parametrize("make", [lambda: Sinusoidal(6), lambda: LearnedPositions(41, 6)])
def test_rows_may_stand_at_places_of_their_own(make):
    add, x = make(), torch.randn(2, 5, 6)
    places = torch.tensor([[0, 0, 1, 2, 3], [7, 30, 31, 32, 40]])
    together = add(x, positions=places)
    for row, own in enumerate(places.tolist()):
        for column, place in enumerate(own):
            alone = add(x[row : row + 1, column : column + 1], start=place)
            assert_close(together[row, column], alone[0, 0])
    assert_close(add(x, positions=torch.arange(3, 8)), add(x, start=3))


@pytest.mark.parametrize(
    "places, message",
    [
        (torch.arange(4), "one for each of the vectors"),
        (torch.arange(5.0), "must be whole numbers"),
        (torch.arange(5) - 1, r"positions \(-1 among them\) must be 0 or more"),
        (torch.arange(15).view(3, 5), "one for each of the vectors"),
    ],
)
def test_places_that_do_not_fit_are_refused(places, message):
    for add in (Sinusoidal(6), LearnedPositions(41, 6)):
        with pytest.raises(ValueError, match=message):
            add(torch.randn(2, 5, 6), positions=places)
    with pytest.raises(ValueError, match=r"positions 3 … 50 .* knows 41 \(longest\)"):
        add(torch.randn(2, 5, 6), positions=torch.tensor([3, 50, 4, 5, 6]))


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_turns_each_row_from_where_it_stands(interleaved):
    """By complex numbers: pair i at place p is turned by p / 10000^(2i / size)."""
    turn, x = Rotary(6, interleaved=interleaved), numbers(2, 3, 4, 6)  # (batch, head, position, …)
    places = torch.tensor([[0, 1, 2, 3], [9, 2, 100, 4]])
    pairs = x.unflatten(-1, (3, 2)) if interleaved else x.unflatten(-1, (2, 3)).mT
    angles = places[:, None, :, None] / 10000 ** (torch.arange(0, 6, 2).double() / 6)
    points = torch.view_as_complex(pairs.contiguous()) * torch.polar(
        torch.ones_like(angles), angles
    )
    turned = torch.view_as_real(points)
    expected = turned.flatten(-2) if interleaved else turned.mT.flatten(-2)
    assert_close(turn(x, places), expected)


def test_heads_turn_by_the_places_they_are_given():
    """A row whose words stand elsewhere, with gaps, reads what it would read alone; also cached."""
    model, x = MultiHead(12, 2, position=Rotary(6)).double(), numbers(2, 5, 12)
    places = torch.tensor([[0, 1, 2, 3, 4], [3, 5, 6, 8, 20]])
    whole = model(x, mask=Causal(), positions=places)
    assert_close(whole[:1], model(x[:1], mask=Causal()))
    padded = numbers(1, 21, 12)
    padded[:, places[1]] = x[1]
    there = torch.zeros(21, dtype=torch.bool)
    there[places[1]] = True
    expected = model(padded, mask=Causal() & there.view(1, 1, 21))[:, places[1]]
    assert_close(whole[1:], expected)
    cache, steps = KeyValueCache(), []
    for part, own in zip(x.split([3, 1, 1], dim=1), places.split([3, 1, 1], dim=1), strict=True):
        steps.append(model(part, mask=Causal(), cache=cache, positions=own))
    assert_close(torch.cat(steps, dim=1), whole)
    assert_close(model(x[:, 2:], x, mask=Causal(), positions=places), whole[:, 2:])


def test_places_are_for_rotary_and_for_all_keys():
    x = torch.randn(2, 5, 12)
    with pytest.raises(ValueError, match="the position here is ALiBi"):
        MultiHead(12, 2, position=ALiBi(2))(x, positions=torch.arange(5))
    with pytest.raises(ValueError, match=r"positions \(4,\) must be one for each of 5 keys"):
        MultiHead(12, 2, position=Rotary(6))(x, positions=torch.arange(4))
