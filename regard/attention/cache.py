"""Cached keys and values for decoding: the next token computes only its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

GROWTH = 64
"""Positions by which the store grows; a reallocation per token would copy everything per token."""


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
            self._store.keys[..., self.length : end, :] = keys
            self._store.values[..., self.length : end, :] = values
            self._store.written = end
        self.length = end
        return self._store.keys[..., :end, :], self._store.values[..., :end, :]

    def branch(self) -> KeyValueCache:
        """Another cache with the same past. Each goes on by itself, and this one stays as it is.

        Nothing is copied until both of them have gone on.
        """
        other = KeyValueCache()
        other._store, other.length = self._store, self.length
        return other

    def pick(self, rows: Tensor) -> KeyValueCache:
        """A cache for these rows of the batch, as a beam needs when some hypotheses go on."""
        picked = KeyValueCache()
        if self._store is not None:
            past = self._past(self._store)
            keys, values = (tensor.index_select(0, rows) for tensor in past)
            picked._store = _Store(keys, values, self.length)
            picked.length = self.length
        return picked

    def _past(self, store: _Store) -> tuple[Tensor, Tensor]:
        return store.keys[..., : self.length, :], store.values[..., : self.length, :]

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
        capacity = -(-end // GROWTH) * GROWTH
        grown = _Store(
            keys.new_empty(*keys.shape[:2], capacity, keys.shape[-1]),
            values.new_empty(*values.shape[:2], capacity, values.shape[-1]),
            written=self.length,
        )
        if store is not None:
            past_keys, past_values = self._past(store)
            grown.keys[..., : self.length, :] = past_keys
            grown.values[..., : self.length, :] = past_values
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
            if _shape_without_positions(old) != _shape_without_positions(new):
                raise ValueError(
                    f"{name} {tuple(new.shape)} do not continue a cache of {tuple(old.shape)} "
                    "(batch, head, position, size)"
                )


def _shape_without_positions(tensor: Tensor) -> tuple[int, ...]:
    """(batch, head, size)"""
    return (*tensor.shape[:-2], tensor.shape[-1])
