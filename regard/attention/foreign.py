"""`watch` and `edit` in modules that are not ours, whose calls are seen at torch's kernel.

`F.scaled_dot_product_attention` is recorded and edited as our own attentions are. Two of torch's
ways there need care: `F.multi_head_attention_forward` calls the kernel out of a mode's sight, or
multiplies by itself when its weights are wanted; and the fast path of `nn.TransformerEncoder`,
which makes no call at all, is left by torch as soon as a mode is active.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _len_torch_function_stack
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from regard.attention.attended import Attended, change_heads
from regard.attention.attention import Attention
from regard.attention.kernel import GroupedProduct, TopLeftCausal, read_mask
from regard.attention.recording import ActiveCall, Session, active_sessions, callers
from regard.attention.weighings import Softmax


class _Catcher(TorchFunctionMode):
    """Sees the torch functions that this thread calls while somebody watches or edits."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[Session] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(not session.called for session in self.sessions):
            self._note_callers()
        if func is F.scaled_dot_product_attention:
            call = _find_caller()
            return func(*args, **kwargs) if call is None else _attend(call, *args, **kwargs)
        if func is F.multi_head_attention_forward:
            call = _find_caller()
            return func(*args, **kwargs) if call is None else _attend_multi_head(call, args, kwargs)
        if func in _BACKWARD:
            # A checkpointed pass is computed again in there, and must meet the same changes.
            with self:
                return _BACKWARD[func](*args, **kwargs)
        return func(*args, **kwargs)

    def _note_callers(self) -> None:
        modules = [id(module) for module, _ in callers()]
        for session in self.sessions:
            session.called |= any(each in session.paths for each in modules)


def _without_modes(function: Any, **names: Any) -> Any:
    """A function of torch that does not ask for modes before it works, with some names of its
    module replaced."""
    names = function.__globals__ | {"has_torch_function": lambda _: False} | names
    code = function.__code__
    copied = FunctionType(code, names, code.co_name, function.__defaults__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


_BACKWARD: dict[Any, Any] = {
    torch.autograd.grad: _without_modes(torch.autograd.grad),
    torch.autograd.backward: _without_modes(torch.autograd.backward),
    Tensor.backward: _without_modes(Tensor.backward, has_torch_function_unary=lambda _: False),
}


class _Thread(threading.local):
    """A thread's catcher; all its sessions share one."""

    def __init__(self) -> None:
        self.catcher = _Catcher()


_thread = _Thread()


@contextmanager
def catch_calls(session: Session) -> Iterator[None]:
    """Within the `with`, calls of torch's kernel in this thread meet the session."""
    for part in session.model.modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise ValueError(
                f"{type(session.model).__name__} holds a TorchScript module "
                f"({part.original_name}), whose calls nobody sees: watch it before it is scripted"
            )
    catcher = _thread.catcher
    if not catcher.sessions:
        _push_mode(catcher)
    catcher.sessions.append(session)
    try:
        yield
    finally:
        catcher.sessions.remove(session)
        if not catcher.sessions:
            _remove_mode(catcher)


def _remove_mode(catcher: _Catcher) -> None:
    """Take it from the stack of modes, wherever it is: a task may leave before another that came
    later."""
    above = []
    while _len_torch_function_stack() and (mode := _pop_mode()) is not catcher:
        above.append(mode)
    for mode in reversed(above):
        _push_mode(mode)


def _find_caller() -> ActiveCall | None:
    """The call that the innermost known module is making; None for our own, which tell by
    themselves."""
    sessions = [session for session in active_sessions() if session.open]
    module: nn.Module | None = None
    for caller, sequences in callers():
        if isinstance(caller, Attention):
            return None
        if module is None and any(id(caller) in session.paths for session in sessions):
            module = caller
        if module is not None and sequences:
            return _call_of(module, sessions, sequences)
    return None if module is None else _call_of(module, sessions, [])


def _call_of(module: nn.Module, sessions: list[Session], sequences: list[Tensor]) -> ActiveCall:
    return ActiveCall(module, [each for each in sessions if id(module) in each.paths], sequences)


def _attend(
    call: ActiveCall,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """F.scaled_dot_product_attention, recorded, and changed where somebody asks for it."""
    context = F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    aligned = _align_heads(call, context, query, key, value, attn_mask)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    added = aligned.mask if aligned.mask is not None and aligned.mask.dtype != torch.bool else None
    comparison = GroupedProduct(aligned.query, aligned.key, factor, added=added)
    mask = TopLeftCausal() if is_causal else read_mask(aligned.mask)
    attended = Attended(aligned.context, comparison, mask, Softmax())
    call.set_sizes(comparison.sizes[0], _count_keys(attended, call))
    if call.explicit:
        values = aligned.value
        if comparison.group > 1:
            values = values.repeat_interleave(comparison.group, dim=-3)
        attended = _change(attended, values, call, dropout_p)
    call.record(attended)
    return attended.context.reshape(context.shape)


@dataclass(frozen=True)
class _KernelCall:
    """The tensors of a call of torch's kernel, heads on an axis of their own."""

    context: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None


def _align_heads(
    call: ActiveCall,
    context: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> _KernelCall:
    """As (batch, head, position, size), or without heads as (batch, position, size)."""
    leading = query.shape[:-2]
    if key.shape[:-3] != query.shape[:-3]:
        key, value = (x.expand(*query.shape[:-3], *x.shape[-3:]) for x in (key, value))
    while mask is not None and 2 < mask.dim() < query.dim():
        mask = mask.unsqueeze(0)
    if len(leading) > 2:
        if mask is not None and mask.dim() > 2:
            mask = mask.expand(*leading, *mask.shape[-2:]).flatten(0, -4)
        context, query, key, value = (x.flatten(0, -4) for x in (context, query, key, value))
    elif _has_groups_as_queries(call, query):
        context, query = (x.flatten(1, 2).unsqueeze(2) for x in (context, query))
        if mask is not None and mask.dim() == 4 and mask.shape[1] > 1:
            mask = mask.flatten(1, 2).unsqueeze(2)
    return _KernelCall(context, query, key, value, mask)


def _has_groups_as_queries(call: ActiveCall, query: Tensor) -> bool:
    """Whether the heads of a group came as the queries of their key: transformers does so in a
    decoding step, when every head has one query."""
    group = getattr(call.module, "num_key_value_groups", 1)
    one_position = len(call.sequences) == 1 and call.sequences[0].shape[1] == 1
    return one_position and query.dim() == 4 and query.shape[-2] == group > 1


def _count_keys(attended: Attended, call: ActiveCall) -> int:
    """How many keys there are up to the last that can be seen.

    A cache of fixed length has room behind it, which a mask hides.
    """
    queries, keys = attended.comparison.sizes
    if not call.one_sequence or queries >= keys or attended.mask is None:
        return keys
    last = torch.tensor([queries - 1], device=attended.comparison.device)
    visible = attended.mask.visible(last, queries, keys)
    return int(visible.flatten(0, -2).any(dim=0).nonzero().max()) + 1 if visible.any() else keys


def _change(attended: Attended, values: Tensor, call: ActiveCall, dropout: float) -> Attended:
    """With the weights of the chosen heads written out and changed, or of all."""
    has_heads = attended.comparison.axes >= 4
    heads = call.changed_heads(values.shape[-3]) if has_heads else None
    if heads is not None:
        return change_heads(attended, values, heads, call, dropout) if heads else attended
    count = values.shape[-3] if has_heads else 0
    weights = call.change(attended.weights, attended.visible(), range(count), count)
    context = F.dropout(weights, dropout) @ values  # (batch, …, query, value)
    return replace(attended, context=context, stored_weights=weights)


def _attend_multi_head(call: ActiveCall, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """F.multi_head_attention_forward with its kernel, or its own products, in our sight."""
    original = F.multi_head_attention_forward
    given = inspect.signature(original).bind(*args, **kwargs).arguments
    products = _Products(call, given["num_heads"])
    forward = _without_modes(
        original,
        scaled_dot_product_attention=products.attend,
        softmax=products.softmax,
        torch=products,
    )
    result = forward(*args, **kwargs)
    if not products.seen:
        raise RuntimeError(
            f"torch {torch.__version__}: multi_head_attention_forward attends in a way that is "
            "not known here"
        )
    return result


class _Products:
    """Stands for `torch` in torch's own multi-head attention, and catches the two products around
    its softmax."""

    def __init__(self, call: ActiveCall, heads: int):
        self.call, self.heads, self.seen = call, heads, False
        self.attended: Attended | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def attend(self, *args: Any, **kwargs: Any) -> Tensor:
        self.seen = True
        return _attend(self.call, *args, **kwargs)

    def baddbmm(self, mask: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        self._compare(queries, keys, mask)
        return torch.baddbmm(mask, queries, keys)

    def bmm(self, left: Tensor, right: Tensor) -> Tensor:
        if self.attended is None:
            self._compare(left, right, None)
            return torch.bmm(left, right)
        context = torch.bmm(left, right)  # (batch · head, query, value)
        self.seen = True
        self.call.record(replace(self.attended, context=self._split(context)))
        return context

    def softmax(self, scores: Tensor, dim: int) -> Tensor:
        assert self.attended is not None
        weights = F.softmax(scores, dim=dim)
        if not self.call.explicit:
            return weights
        visible = self.attended.visible()
        weights = self.call.change(
            self._split(weights), visible, range(self.heads), self.heads
        )  # (batch, head, query, key)
        self.attended = replace(self.attended, stored_weights=weights)
        return weights.flatten(0, 1)

    def _compare(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> None:
        """Note what is compared: queries (batch · head, query, size), keys (…, size, key)."""
        added = None
        if mask is not None:
            added = mask.unsqueeze(0) if mask.shape[0] == 1 else self._split(mask)
        queries = self._split(queries)  # (batch, head, query, size)
        comparison = GroupedProduct(queries, self._split(keys.mT), 1.0, added=added)
        self.call.set_sizes(*comparison.sizes)
        self.attended = Attended(queries, comparison, read_mask(added), Softmax())

    def _split(self, tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (-1, self.heads))


def check_was_seen(session: Session) -> None:
    """Raise an error if the model ran and attends in arithmetic of its own, which nobody sees."""
    for part in session.model.modules():
        config = getattr(part, "config", None)
        way = getattr(config, "_attn_implementation", None)
        if session.called and isinstance(way, str) and way != "sdpa":
            raise ValueError(
                f"{type(session.model).__name__} was called and no attention was seen: it attends "
                f"in its own code (attn_implementation={way!r}). Load it with "
                'attn_implementation="sdpa", or call model.set_attn_implementation("sdpa")'
            )
