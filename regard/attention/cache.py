"""Keys and values of the words said so far, so that saying the next needs only its own."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64
"""Positions by which the memory grows; a reallocation each word would copy everything each word."""


class KeyValueCache:
    """A growing store of projected keys and values, (batch, head, position, size).

    What `append` hands out are views of the positions filled so far. Later words are written behind
    them and rows are never moved in place, so whoever kept a view keeps the truth.
    """

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions; return everything so far."""
        self._check(keys, values)
        start, self.length = self.length, self.length + keys.shape[-2]
        self._keys = self._put(self._keys, start, keys)
        self._values = self._put(self._values, start, values)
        return self._keys[..., : self.length, :], self._values[..., : self.length, :]

    def pick(self, rows: Tensor) -> KeyValueCache:
        """A cache for these rows of the batch, as a beam needs when some hypotheses go on."""
        picked = KeyValueCache()
        if self._keys is not None and self._values is not None:
            filled = slice(self.length)
            picked._keys = self._keys[:, :, filled].index_select(0, rows)
            picked._values = self._values[:, :, filled].index_select(0, rows)
            picked.length = self.length
        return picked

    def _check(self, keys: Tensor, values: Tensor) -> None:
        if keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                f"values {tuple(values.shape)} do not continue a cache of keys "
                f"{tuple(keys.shape)}: each key has its value"
            )
        for name, store, new in (("keys", self._keys, keys), ("values", self._values, values)):
            if store is not None and _kind(store) != _kind(new):
                raise ValueError(
                    f"{name} {tuple(new.shape)} do not continue a cache of {tuple(store.shape)} "
                    "(batch, head, position, size)"
                )

    def _put(self, store: Tensor | None, start: int, new: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            # Writing into a store would spoil what a backward pass has kept of it.
            return new if store is None else torch.cat([store[..., :start, :], new], dim=-2)
        # What was filled in inference mode may be read but not written outside of it.
        outside = not torch.is_inference_mode_enabled()
        if store is None or (outside and store.is_inference()) or store.shape[-2] < self.length:
            room = -(-self.length // BLOCK) * BLOCK
            grown = new.new_empty(*new.shape[:2], room, new.shape[-1])
            if store is not None:
                grown[..., :start, :] = store[..., :start, :]
            store = grown
        store[..., start : self.length, :] = new
        return store


def _kind(tensor: Tensor) -> tuple[int, ...]:
    """All but the number of positions."""
    return (*tensor.shape[:-2], tensor.shape[-1])
