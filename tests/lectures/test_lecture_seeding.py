import torch

from regard.lectures.seeding import fixed_seed


def test_under_a_fixed_seed_there_is_one_thread_and_the_others_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with fixed_seed(7):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_fixed_seed_leaves_the_random_numbers_of_the_caller_alone():
    torch.manual_seed(3)
    undisturbed = torch.rand(5)
    torch.manual_seed(3)
    with fixed_seed(7):
        first = torch.rand(5)
    assert torch.equal(torch.rand(5), undisturbed)
    with fixed_seed(7):
        assert torch.equal(torch.rand(5), first)
