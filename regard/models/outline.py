"""Models without initial weights: on the meta device, to see how large they would be, or unfilled,
to be loaded from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from threading import get_ident
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

M = TypeVar("M")

MAX_PARAMETERS = 50_000  # tensors; a Transformer with a thousand layers has 12,000


def outline(make: Callable[[], M], max_parameters: int = MAX_PARAMETERS) -> M:
    """The model that `make` builds, with names and shapes alone: on the meta device, where tensors
    take no memory.

    Settings of which no model can be built are refused, a billion layers among them: building ends
    when there are more than `max_parameters` parameters.
    """
    try:
        with torch.device("meta"), _UnfilledParameters(), limit_parameters(max_parameters):
            return make()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"no model has sizes like these: {reason}") from None


def build_unfilled(make: Callable[[], M]) -> M:
    """The model that `make` builds, its parameters not filled in, and no random number drawn.

    What no file holds, as the sinusoids of positions, is worked out as ever.
    """
    with torch.random.fork_rng(devices=[]), _UnfilledParameters():
        return make()


class _UnfilledParameters(TorchDispatchMode):
    """Whatever would be filled with random numbers is left as the memory was found."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if func._schema.is_mutable:  # as uniform_
            return args[0]
        if any(argument.name == "device" for argument in func._schema.arguments):  # as randn
            shape = func(*args, **{**kwargs, "device": torch.device("meta")})
            return torch.empty_like(shape, device=kwargs.get("device") or "cpu")
        return func(*args, **kwargs)


@contextmanager
def limit_parameters(parameters: int) -> Iterator[None]:
    """Stop whoever builds a module with more parameters than this."""
    registered, builder = count(1), get_ident()

    def check(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
        if get_ident() == builder and next(registered) > parameters:
            raise ValueError(f"the model has more than {parameters:,} parameters")

    handle = register_module_parameter_registration_hook(check)
    try:
        yield
    finally:
        handle.remove()


def count_parameter_bytes(model: nn.Module) -> int:
    """The memory of all parameters; shared ones count once."""
    return sum(map(_bytes, model.parameters()))


def count_table_bytes(model: nn.Module) -> int:
    """The memory of all that is worked out when the model is built, and in no file."""
    return sum(map(_bytes, model.buffers()))


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
