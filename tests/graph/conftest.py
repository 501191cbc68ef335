"""What the tests of the graph share: torch's autograd as the judge."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from regard.graph import Graph, parameter

EXACT = {"rtol": 1e-10, "atol": 1e-14}  # for gradients that cancel to zero


@pytest.fixture(scope="session")
def random() -> Callable[..., np.ndarray]:
    """Numbers that differ from call to call and not from run to run."""
    generator = np.random.default_rng(11)
    return lambda *shape: generator.normal(size=shape)


@pytest.fixture(scope="session")
def agree(random) -> Callable[..., None]:
    """agree(ours, theirs, *arrays): the same value, and the same gradient for every array."""

    def check(ours: Callable, theirs: Callable, *arrays: np.ndarray) -> None:
        nodes = [parameter(f"a{i}", array) for i, array in enumerate(arrays)]
        tensors = [torch.tensor(array, dtype=torch.float64) for array in arrays]
        for tensor in tensors:
            tensor.requires_grad_()
        output, expected = ours(*nodes), theirs(*tensors)
        assert_allclose(output.value, expected.detach().numpy(), **EXACT)
        seed = random(*output.shape)
        Graph(output).backward(seed)
        expected.backward(torch.tensor(seed, dtype=torch.float64))
        for node, tensor in zip(nodes, tensors, strict=True):
            assert node.gradient.shape == node.shape
            assert_allclose(node.gradient, tensor.grad.numpy(), **EXACT)

    return check
