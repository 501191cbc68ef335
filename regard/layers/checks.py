"""Errors for recurrent inputs, lengths and states that do not fit, by name, value and reason."""

import torch
from torch import Tensor

from regard.layers.state import RecurrentState


def check_inputs(inputs: Tensor, *axes: str, input_size: int) -> None:
    """Refuse inputs that are not (*axes, input_size)."""
    if inputs.dim() != len(axes) + 1 or inputs.shape[-1] != input_size:
        raise ValueError(
            f"inputs {tuple(inputs.shape)} must be ({', '.join(axes)}, input_size {input_size})"
        )


def check_lengths(lengths: Tensor, batch: int, time: int) -> None:
    """Refuse lengths that are not one whole number a row, from 0 to `time`."""
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths ({lengths.dtype}) must be whole numbers")
    if lengths.shape != (batch,):
        raise ValueError(f"lengths {tuple(lengths.shape)} must be (batch {batch},)")
    wrong = lengths[(lengths < 0) | (lengths > time)]
    if len(wrong):
        raise ValueError(f"lengths ({int(wrong[0])}) must be from 0 to the number of steps, {time}")


def check_state(state: RecurrentState, shape: tuple[int, ...], *, cell: bool) -> None:
    """Refuse a state whose parts are not of `shape`, or that lacks a cell or has one too many."""
    if (state.cell is not None) != cell:
        raise ValueError(f"state.cell must {'be given' if cell else 'be None'}")
    for name, part in zip(state._fields, state, strict=True):
        if part is not None and part.shape != shape:
            raise ValueError(f"state.{name} {tuple(part.shape)} must be {shape}")
