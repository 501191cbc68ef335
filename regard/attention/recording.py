"""The sessions of `watch` and `edit` in this thread or task, which every attention call asks.

A session lives in a context variable and knows modules by their identity. Nothing hangs on a
module, so copies of it carry nothing, and threads with one model do not see each other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from regard.attention.attended import Attended


@dataclass(frozen=True)
class Call:
    """Which call of an attention a change is asked about."""

    path: str
    step: int
    """How many calls this attention had before, since the `with` began."""
    rows: range
    """The positions of the queries in their sequence: with a cache of n, a step has row n."""
    heads: tuple[int, ...]
    """The numbers of the heads whose weights are handed over; none where there are no heads."""
    head_count: int


Change = Callable[[Tensor, Tensor | None, Call], Tensor]
"""Takes weights (batch, …, query, key), the mask and the call; gives the weights to go on with."""


@dataclass
class _History:
    """What a session remembers of an attention's calls, to place the next one."""

    calls: int = 0
    keys: int = 0
    end: int = 0
    longest: int = 0

    def add(self, queries: int, keys: int, one_sequence: bool) -> int:
        """Remember a call; return the position of its first query.

        In one sequence the queries are the last of the keys. Over another, a single query that
        comes back to as many keys, or one more, is the next step of a decoder.
        """
        if one_sequence:
            first = max(keys - queries, 0)
        else:
            first = self.end if queries == 1 and 0 <= keys - self.keys <= 1 else 0
        self.calls, self.keys, self.end = self.calls + 1, keys, first + queries
        self.longest = max(self.longest, self.end)
        return first


@dataclass(eq=False)
class Session:
    """One `with`: the modules it knows, what it changes, and what it does with a result."""

    model: nn.Module
    paths: dict[int, list[str]]
    """Every path of a module, by its identity; the model is held, so identities stay."""
    changes: Mapping[int, Sequence[Change]] = field(default_factory=dict)
    receive: Callable[[list[str], Attended], None] | None = None
    writes_weights: bool = False
    """Whether every weight must be written out, so that it can have a gradient."""
    open: bool = True
    called: bool = False
    """Whether a module of the model has called a torch function."""
    histories: dict[int, _History] = field(default_factory=dict)

    def history(self, module: nn.Module) -> _History:
        return self.histories.setdefault(id(module), _History())


_sessions: ContextVar[tuple[Session, ...]] = ContextVar("regard_sessions", default=())


def active_sessions() -> tuple[Session, ...]:
    """The sessions of this thread or task, the outermost first; nearly always none."""
    if torch.compiler.is_compiling():
        return ()  # inside a session nothing compiled runs
    return _sessions.get()


def is_watched(model: nn.Module) -> bool:
    """Whether a session of this thread or task knows a module of the model."""
    sessions = [each for each in active_sessions() if each.open]
    return any(id(part) in each.paths for each in sessions for part in model.modules())


@contextmanager
def activate(session: Session) -> Iterator[None]:
    """Within the `with`, attention calls of this thread or task meet the session."""
    _sessions.set((*_sessions.get(), session))
    try:
        with _EAGER:
            yield
    finally:
        # By identity: whoever began later may go on longer. Closed, too, since a task that was
        # begun inside has a context of its own and would meet it still.
        session.open = False
        _sessions.set(tuple(each for each in _sessions.get() if each is not session))


class _Eager:
    """While anybody holds it, compiled models run as they are written: a graph that was compiled
    before would go past it. The stance is the whole process's, hence the count."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.stance: Any = None

    def __enter__(self) -> None:
        with self.lock:
            self.holders += 1
            # Importing the compiler takes seconds; without it nothing was compiled.
            if self.stance is None and "torch._dynamo" in sys.modules:
                self.stance = torch.compiler.set_stance("force_eager")

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.holders -= 1
            if self.stance is not None and not self.holders:
                self.stance.__exit__(None, None, None)
                self.stance = None


_EAGER = _Eager()


def callers() -> Iterator[tuple[nn.Module, list[Tensor]]]:
    """The modules whose calls we are in, innermost first, with the different sequences (batch,
    position, size) they were given.

    Read from the stack: hooks would have to hang on the modules, or on every module of the process.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is nn.Module._call_impl.__code__:
            found = frame.f_locals
            yield found["self"], _find_sequences(found["args"], found["kwargs"])
        frame = frame.f_back


def _find_sequences(args: Iterable[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    named = [value for name, value in kwargs.items() if "mask" not in name and "bias" not in name]
    for value in [*args, *named]:
        if isinstance(value, Tensor) and value.dim() == 3 and value.is_floating_point():
            found[id(value)] = value
    return list(found.values())


class ActiveCall:
    """One attention call, and the sessions that know the module that makes it."""

    def __init__(self, module: nn.Module, sessions: list[Session], sequences: list[Tensor]):
        self.module, self.sessions, self.sequences = module, sessions, sequences
        self.one_sequence = len(sequences) < 2
        """Whether queries and keys come from the same vectors."""
        self.changes: list[tuple[Change, str, int, range]] = []
        self.rows = range(0)
        self.recomputing = torch._C._current_graph_task_id() != -1
        """Whether a backward pass computes a checkpointed call again; it makes no new one."""
        self.writes_weights = any(session.writes_weights for session in sessions)

    def set_sizes(self, queries: int, keys: int) -> None:
        """Note how many queries and keys there are, which places the rows of this call."""
        for session in reversed(self.sessions):  # the outermost has seen most
            history = session.history(self.module)
            if self.recomputing:
                history = replace(history)
            step, first = history.calls, history.add(queries, keys, self.one_sequence)
            self.rows = range(first, first + queries)
            path = session.paths[id(self.module)][0]
            changes = session.changes.get(id(self.module), ())
            self.changes[:0] = [(change, path, step, self.rows) for change in changes]

    @property
    def explicit(self) -> bool:
        """Whether some weights have to be written out."""
        return self.writes_weights or bool(self.changes)

    def changed_heads(self, head_count: int) -> list[int] | None:
        """The heads that the changes touch; None if one of them may touch all."""
        if self.writes_weights:
            return None
        heads: set[int] = set()
        for change, *_ in self.changes:
            name_heads = getattr(change, "name_heads", None)
            touched = None if name_heads is None else name_heads(head_count)
            if touched is None:
                return None
            heads |= set(touched)
        return sorted(heads)

    def change(
        self, weights: Tensor, mask: Tensor | None, heads: Sequence[int], head_count: int
    ) -> Tensor:
        """The weights of these heads after every change, in the order they were asked for."""
        for change, path, step, rows in self.changes:
            weights = change(weights, mask, Call(path, step, rows, tuple(heads), head_count))
        return weights

    def record(self, attended: Attended) -> None:
        """Hand the result to whoever watches."""
        if self.recomputing:
            return
        weights = attended.stored_weights
        if self.writes_weights and weights is not None and weights.requires_grad:
            weights.retain_grad()
        receivers = [session for session in self.sessions if session.receive is not None]
        if not receivers:
            return
        kept = attended.keep(self.rows, self.one_sequence)
        for session in receivers:
            assert session.receive is not None
            session.receive(session.paths[id(self.module)], kept)


def find_call(module: nn.Module) -> ActiveCall | None:
    """The call that `module` is making, if a session knows it."""
    sessions = [each for each in active_sessions() if each.open and id(module) in each.paths]
    if not sessions:
        return None
    sequences = next((given for _, given in callers() if given), [])
    return ActiveCall(module, sessions, sequences)
