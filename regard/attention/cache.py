"""Cached keys and values for decoding: the next token computes only its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.picking import is_identity

GROWTH = 256
"""Positions by which the store grows: to grow is to copy everything, and to touch new memory. What
is not written to is not touched, so that a short answer hardly pays for the room behind it."""

GROWTH_OF_PICKED = 16
"""The same where rows have been picked: a beam picks at nearly every step, and copies anyway."""


@dataclass
class _Store:
    """Preallocated keys and values, whose beginning several caches may share."""

    keys: Tensor  # (batch, head, capacity, size)
    values: Tensor  # (batch, head, capacity, size)
    written: int  # positions somebody has written; whoever writes on must begin right behind them

    def can_hold(self, end: int) -> bool:
        """Whether positions up to `end` can be written into it."""
        # What was written in inference mode may be read but not written outside of it.
        read_only = self.keys.is_inference() and not torch.is_inference_mode_enabled()
        return self.keys.shape[-2] >= end and not read_only

    def write(self, start: int, keys: Tensor, values: Tensor) -> None:
        """Positions from `start` on, the last ones written."""
        self.written = start + keys.shape[-2]
        self.keys[..., start : self.written, :] = keys
        self.values[..., start : self.written, :] = values


class KeyValueCache:
    """A growing store of projected keys and values, (batch, head, position, size).

    `append` returns views of the positions written so far. Later ones are written behind them and
    rows are never moved in place, so a view stays as it was.
    """

    def __init__(self) -> None:
        self._store: _Store | None = None
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions; return everything so far."""
        self._check(keys, values)
        end = self.length + keys.shape[-2]
        if torch.is_grad_enabled():
            # Writing into a store would spoil what a backward pass has kept of it.
            self._store = self._concatenate(keys, values)
        else:
            self._store = self._writable_store(end, keys, values)
            self._store.write(self.length, keys, values)
        self.length = end
        return self._past(self._store)

    def branch(self) -> KeyValueCache:
        """Another cache with the same past. Each goes on by itself, and this one stays as it is.

        Nothing is copied until both of them have gone on.
        """
        other = KeyValueCache()
        other._store, other.length = self._store, self.length
        return other

    def pick(self, rows: Tensor) -> KeyValueCache:
        """A cache for these rows of the batch, as a beam needs when some hypotheses go on.

        It has room for the next positions. All rows in their order are a branch: nothing is copied.
        """
        if self._store is None or is_identity(rows, self._store.keys.shape[0]):
            return self.branch()
        picked = KeyValueCache()
        past = self._past(self._store)
        if torch.is_grad_enabled():
            keys, values = (tensor.index_select(0, rows) for tensor in past)
            picked._store = _Store(keys, values, self.length)
        else:
            store = _reserve(len(rows), self.length + 1, *past, GROWTH_OF_PICKED)
            for old, new in zip(past, (store.keys, store.values), strict=True):
                torch.index_select(old, 0, rows, out=new.narrow(-2, 0, self.length))
            store.written, picked._store = self.length, store
        picked.length = self.length
        return picked

    def detach(self) -> KeyValueCache:
        """Another cache with the same past, through which no gradient goes back."""
        other = self.branch()
        store = self._store
        if store is not None and (store.keys.requires_grad or store.values.requires_grad):
            other._store = _Store(store.keys.detach(), store.values.detach(), store.written)
        return other

    def _past(self, store: _Store) -> tuple[Tensor, Tensor]:
        return store.keys.narrow(-2, 0, self.length), store.values.narrow(-2, 0, self.length)

    def _concatenate(self, keys: Tensor, values: Tensor) -> _Store:
        """The past and the new in tensors of their own."""
        if self._store is not None:
            past_keys, past_values = self._past(self._store)
            keys = torch.cat([past_keys, keys], dim=-2)
            values = torch.cat([past_values, values], dim=-2)
        return _Store(keys, values, keys.shape[-2])

    def _writable_store(self, end: int, keys: Tensor, values: Tensor) -> _Store:
        """The store itself if the new positions can be written into it, else a larger copy."""
        store = self._store
        if store is not None and store.written == self.length and store.can_hold(end):
            return store
        grown = _reserve(keys.shape[0], end, keys, values, GROWTH)
        if store is not None:
            grown.write(0, *self._past(store))
        return grown

    def _check(self, keys: Tensor, values: Tensor) -> None:
        if keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                f"values {tuple(values.shape)} do not continue a cache of keys "
                f"{tuple(keys.shape)}: each key has its value"
            )
        if self._store is None:
            return
        past = (self._store.keys, self._store.values)
        for name, old, new in zip(("keys", "values"), past, (keys, values), strict=True):
            if old.shape[:-2] != new.shape[:-2] or old.shape[-1] != new.shape[-1]:
                raise ValueError(
                    f"{name} {tuple(new.shape)} do not continue a cache of {tuple(old.shape)} "
                    "(batch, head, position, size)"
                )


def _reserve(batch: int, end: int, keys: Tensor, values: Tensor, growth: int) -> _Store:
    """Room for positions up to `end`, in whole blocks, of vectors like these."""
    capacity = -(-end // growth) * growth
    return _Store(
        keys.new_empty(batch, keys.shape[1], capacity, keys.shape[-1]),
        values.new_empty(batch, values.shape[1], capacity, values.shape[-1]),
        written=0,
    )
