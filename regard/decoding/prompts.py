"""Prompts of different lengths as one batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batches import Words


def prepare_prompts(prompts: Sequence[Sequence[int]], first: int) -> tuple[Words, Tensor]:
    """The batch that a language model starts from, and the ids (batch,) of its first step.

    The last id of a prompt is fed at the first step; those before it stand in the batch, padded on
    the left. For an empty prompt, which has none to feed, stands `first`: the end of a sentence,
    say.
    """
    whole = [list(prompt) or [first] for prompt in prompts]
    batch = Words.prompts([ids[:-1] for ids in whole])
    return batch, torch.tensor([ids[-1] for ids in whole], dtype=torch.long)
