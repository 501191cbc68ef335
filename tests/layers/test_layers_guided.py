"""Where heads look before they have learned anything."""

import torch
from torch.testing import assert_close

from regard.layers.guided import make_waves, rotation, start_guided, wave_speeds


def test_a_turn_leads_from_any_position_to_the_one_so_many_steps_on():
    waves = make_waves(torch.arange(20), 6)
    for steps in (-3, -1, 1, 5):
        begin, end = max(0, -steps), 20 - max(0, steps)
        assert_close(waves[begin:end] @ rotation(6, steps).T, waves[begin + steps : end + steps])


def test_waves_turn_by_their_speeds():
    place = torch.tensor([7])
    waves, angles = make_waves(place, 8)[0], 7 * wave_speeds(8)
    assert_close(waves[0::2], angles.sin().float())
    assert_close(waves[1::2], angles.cos().float())


def test_a_query_meets_the_key_of_its_neighbour():
    torch.manual_seed(0)
    positions, projection = torch.empty(12, 32), torch.zeros(96, 32)
    start_guided(positions, [projection], heads=4)
    queries, keys, values = (part.view(4, 8, 32) for part in projection.chunk(3))
    assert_close(positions.square().mean(), torch.tensor(0.07**2))
    assert_close(queries[:2], keys[:2])
    for head, offset in ((2, 1), (3, -1)):
        mine, theirs = positions @ queries[head].T, positions @ keys[head].T
        middle = torch.arange(1, 11)
        assert_close(mine[middle], theirs[middle + offset])
    assert not values.any()
