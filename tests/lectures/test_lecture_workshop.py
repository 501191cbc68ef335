import torch

from regard.lectures.workshop import workshop


def test_a_workshop_has_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with workshop(7):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_workshop_has_its_own_random_numbers():
    torch.manual_seed(3)
    undisturbed = torch.rand(5)
    torch.manual_seed(3)
    with workshop(7):
        first = torch.rand(5)
    assert torch.equal(torch.rand(5), undisturbed)
    with workshop(7):
        assert torch.equal(torch.rand(5), first)
