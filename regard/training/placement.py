"""Distributed training: one process, or several under torchrun, by torch's own means."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from regard.data.batches import Batch
from regard.layers.cells import Cell


@dataclass(frozen=True)
class Placement:
    """Which process this is, out of how many, and on which device."""

    rank: int
    world: int
    device: torch.device

    @classmethod
    def from_environment(cls) -> Placement:
        """As torchrun says in the environment; one process without it."""
        world = int(os.environ.get("WORLD_SIZE", "1"))
        cuda = torch.cuda.is_available()
        if world > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if cuda else "gloo")
        rank = int(os.environ.get("RANK", "0"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        return cls(rank, world, torch.device(f"cuda:{local}" if cuda else "cpu"))

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def total(self, number: float) -> float:
        """The sum over all processes."""
        if self.world == 1:
            return number
        held = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.all_reduce(held)
        return held.item()

    def totals(self, numbers: dict[str, float]) -> dict[str, float]:
        """The sum over all processes of each number; all have the same names."""
        if self.world == 1:
            return numbers
        held = torch.tensor(list(numbers.values()), dtype=torch.float64, device=self.device)
        dist.all_reduce(held)
        return dict(zip(numbers, held.tolist(), strict=True))

    def all_gather(self, tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        """What each process holds under these names, by rank; every process must ask."""
        if self.world == 1:
            return [tensors]
        packed = save({name: tensor.contiguous() for name, tensor in tensors.items()})
        mine = torch.frombuffer(bytearray(packed), dtype=torch.uint8).to(self.device)
        sizes = [torch.zeros(1, dtype=torch.long, device=self.device) for _ in range(self.world)]
        dist.all_gather(sizes, torch.tensor([len(mine)], device=self.device))
        longest = max(int(size) for size in sizes)
        filled = F.pad(mine, (0, longest - len(mine)))
        found = [torch.empty_like(filled) for _ in sizes]
        dist.all_gather(found, filled)
        pairs = zip(found, sizes, strict=True)
        return [load(each[: int(size)].cpu().numpy().tobytes()) for each, size in pairs]

    def barrier(self) -> None:
        """Wait until every process is here."""
        if self.world > 1:
            dist.barrier()

    def close(self) -> None:
        if self.world > 1 and dist.is_initialized():
            # A thread of gloo's needs the interpreter's lock to let go of what was last exchanged.
            # Should the group be torn down first, by whoever holds the lock, both wait for ever.
            time.sleep(0.1)
            dist.destroy_process_group()

    def local_rows(self, batch: Batch) -> Batch:
        """The rows of a batch that are this process's."""
        if self.world == 1:
            return batch
        return batch.pick(torch.arange(self.rank, len(batch), self.world))

    def wrap(self, objective: nn.Module, sharding: str) -> nn.Module:
        """An objective as it is trained: as it is, replicated (DDP), or in shards (FSDP2)."""
        if self.world == 1:
            return objective
        if sharding == "fsdp":
            for block in stacked_blocks(objective):
                fully_shard(block)
            fully_shard(objective)
            return objective
        return DistributedDataParallel(objective)

    def full_state(self, model: nn.Module) -> dict[str, Tensor]:
        """All weights in one place, whatever the sharding; every process must ask."""
        return gather(model.state_dict())

    def load_full_state(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        """Put whole weights into a model, each process its share."""
        now = model.state_dict()
        model.load_state_dict({name: shard_like(w, now[name]) for name, w in weights.items()})

    def no_sync(self, model: nn.Module, last: bool) -> AbstractContextManager[object]:
        """Gradients are exchanged once a step, with the last of the accumulated batches."""
        if isinstance(model, DistributedDataParallel) and not last:
            return model.no_sync()
        return nullcontext()


def stacked_blocks(objective: nn.Module) -> list[nn.Module]:
    """The blocks of all stacks of layers, each to be sharded by itself.

    Cells of a recurrent network are not: a fused kernel reads their weights and never calls them,
    so that nobody would gather their shards.
    """
    stacks = (part for part in objective.modules() if isinstance(part, nn.ModuleList))
    return [block for stack in stacks for block in stack if not isinstance(block, Cell)]


def gather(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Sharded tensors made whole; every process must ask."""
    return {k: t.full_tensor() if isinstance(t, DTensor) else t for k, t in tensors.items()}


def shard_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Shard a whole tensor over the processes as `other` is."""
    if isinstance(other, DTensor) and tensor.shape == other.shape:
        return distribute_tensor(tensor, other.device_mesh, other.placements)
    return tensor
