"""Gradient norms through time: how far a loss reaches back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.layers.gates import Gates, watch_gates


def gradient_flow(
    model: nn.Module,
    inputs: Any,
    loss: Callable[[Any], Tensor],
    *,
    path: str | None = None,
    of: str = "hidden",
    layer: int = -1,
    direction: str = "forward",
) -> Tensor:
    """‖∂loss/∂h_t‖ for every time step t: (time,)

    ∂loss/∂h_t = ∂loss/∂h_T · ∂h_T/∂h_{T-1} ⋯ ∂h_{t+1}/∂h_t

    A product of as many Jacobians as there are steps in between. It vanishes when they shrink what
    they are given and explodes when they stretch it, and with it goes what can be learned from the
    distant past. The norm is over batch and hidden size together.

    `loss` makes one number of what `model(inputs)` returns; a plain tuple of inputs is unpacked
    into the model's arguments. `path` names the recurrent module, where there are several;
    `of="cell"` asks for an LSTM's cell state, through which its gradient flows.

    Bengio, Simard & Frasconi (1994); Pascanu, Mikolov & Bengio (2013), section 2, equation 5.
    """
    with torch.enable_grad(), watch_gates(model) as seen:
        result = model(*inputs) if type(inputs) is tuple else model(inputs)
        total = loss(result)
    if total.numel() != 1:
        raise ValueError(f"loss {tuple(total.shape)} must give a single number")
    gates = Gates.join(seen[_choose_path(path, list(seen))])
    states = gates.per_step(of, layer=layer, direction=direction)
    if not (total.requires_grad and all(state.requires_grad for state in states)):
        raise ValueError("model must have parameters that require a gradient, or there is no flow")
    gradients = torch.autograd.grad(total, states, allow_unused=True, materialize_grads=True)
    return torch.stack([gradient.norm() for gradient in gradients])


def _choose_path(path: str | None, paths: list[str]) -> str:
    if path is None and len(paths) == 1:
        return paths[0]
    if path is None or path not in paths:
        known = ", ".join(map(repr, paths)) or "none"
        raise ValueError(f"path ({path!r}) must name a recurrent module of the model: {known}")
    return path
