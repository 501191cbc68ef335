"""A Neural Turing Machine: a network that learns to use a memory by looking.

o_t = controller([x_t; r_{t−1}])                      an LSTM, or one layer without a memory
w_t = address(M_{t−1}, w_{t−1}; controls from o_t)    content → gate → shift → sharpen
M_t = M_{t−1} ⊙ Π (1 − w_t eᵀ) + Σ w_t aᵀ             what is written: erased first, then added
r_t = w_t M_t                                          what is read
y_t = W [o_t; r_t]

Every step is a smooth function of where the heads look, so that gradients teach where to look: the
memory is a soft version of a computer's, and what is learned on short sequences holds for longer
ones.

Graves, Wayne & Danihelka (2014), "Neural Turing machines", section 3. The paper leaves open whether
heads read before or after the writing of a step; here they read after it, as in Graves et al.
(2016). The memory starts at a small constant, and what leaves the controller is clipped: Collier &
Beel (2018), "Implementing neural Turing machines", sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import Attention, Controls, Cosine, NTMAddressing
from regard.data.batches import Bits
from regard.layers import LSTMCell, RecurrentState
from regard.models.checks import check_above_zero, check_at_least, check_one_of
from regard.products import Linear

INITIAL_MEMORY = 1e-6
"""What every cell of the memory holds before the first step."""


@dataclass(frozen=True, kw_only=True)
class NTMConfig:
    """Graves et al. (2014), tables 1 and 2. The defaults are the copy task's, LSTM controller."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "copy-lstm": {"controller": "lstm"},
        "copy-feedforward": {"controller": "feedforward"},
        "recall-feedforward": {
            "controller": "feedforward",
            "controller_size": 256,
            "read_heads": 4,
            "write_heads": 4,
        },
    }

    inputs: int
    outputs: int
    controller: str = "lstm"  # or "feedforward", one layer without a memory
    controller_size: int = 100  # of its hidden layer
    slots: int = 128  # places of the memory
    slot_size: int = 20  # numbers in each
    read_heads: int = 1
    write_heads: int = 1
    reach: int = 1  # the largest step of a shift
    clip: float = 20.0  # of what leaves the controller

    def __post_init__(self) -> None:
        check_at_least(1, self, "inputs", "outputs", "controller_size", "slots", "slot_size")
        check_at_least(1, self, "read_heads", "write_heads")
        check_at_least(0, self, "reach")
        check_one_of(("lstm", "feedforward"), self, "controller")
        check_above_zero(self, "clip")
        if 2 * self.reach + 1 > self.slots:
            raise ValueError(
                f"reach ({self.reach}) must be below half of slots ({self.slots}): a shift goes "
                "round in a circle"
            )


@dataclass(frozen=True)
class NTMState:
    """The memory, where the heads are, what they read and added last, and the controller's
    state."""

    memory: Tensor  # (batch, slot, slot_size)
    read_weights: Tensor  # (batch, read head, slot)
    write_weights: Tensor  # (batch, write head, slot)
    reads: Tensor  # (batch, read head, slot_size)
    adds: Tensor  # (batch, write head, slot_size)
    controller: RecurrentState | None  # None for a controller without a memory of its own

    def pick(self, rows: Tensor) -> NTMState:
        controller = None if self.controller is None else self.controller.pick(rows)
        return NTMState(
            self.memory.index_select(0, rows),
            self.read_weights.index_select(0, rows),
            self.write_weights.index_select(0, rows),
            self.reads.index_select(0, rows),
            self.adds.index_select(0, rows),
            controller,
        )

    def maps(self) -> dict[str, Tensor]:
        """What went into the memory and came out of it, and where, (batch, head, …) each."""
        return {
            "adds": self.adds,
            "reads": self.reads,
            "write weights": self.write_weights,
            "read weights": self.read_weights,
        }


class NTM(nn.Module):
    """Read a vector, write to the memory, read from it, answer; step by step."""

    carries = False

    def __init__(self, config: NTMConfig):
        super().__init__()
        self.config = config
        self.controller = Controller(config)
        self.write = WriteHeads(config)
        self.read = ReadHeads(config)
        read_size = config.read_heads * config.slot_size
        self.output = Linear(config.controller_size + read_size, config.outputs)
        self.first_reads = nn.Parameter(0.01 * torch.randn(config.read_heads, config.slot_size))

    def forward(self, batch: Bits) -> Tensor:
        state, steps = self.start(batch), []
        for inputs in batch.inputs.unbind(dim=1):
            logits, state = self.step(inputs, state)
            steps.append(logits)
        return torch.stack(steps, dim=1)  # (batch, time, output)

    def start(self, batch: Bits) -> NTMState:
        """The state before the first step: heads at the first place, a memory of next to
        nothing."""
        config, rows = self.config, len(batch)
        like = self.first_reads
        at_first = like.new_zeros(rows, config.read_heads + config.write_heads, config.slots)
        at_first[..., 0] = 1.0
        read, write = at_first.split([config.read_heads, config.write_heads], dim=1)
        return NTMState(
            memory=like.new_full((rows, config.slots, config.slot_size), INITIAL_MEMORY),
            read_weights=read,
            write_weights=write,
            reads=self.first_reads.tanh().expand(rows, -1, -1),
            adds=like.new_zeros(rows, config.write_heads, config.slot_size),
            controller=self.controller.start(rows),
        )

    def step(self, inputs: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        """One vector (batch, input) → logits (batch, output), and the state after."""
        joined = torch.cat([inputs, state.reads.flatten(1)], dim=-1)
        signals, controller = self.controller(joined, state.controller)  # (batch, controller)
        memory, write_weights, adds = self.write(signals, state.memory, state.write_weights)
        reads, read_weights = self.read(signals, memory, state.read_weights)
        answer = self.output(torch.cat([signals, reads.flatten(1)], dim=-1))
        state = replace(
            state,
            memory=memory,
            read_weights=read_weights,
            write_weights=write_weights,
            reads=reads,
            adds=adds,
            controller=controller,
        )
        return answer, state


class Controller(nn.Module):
    """What steers the heads: an LSTM, or one layer that remembers nothing by itself."""

    def __init__(self, config: NTMConfig):
        super().__init__()
        size = config.inputs + config.read_heads * config.slot_size
        self.clip = config.clip
        recurrent = config.controller == "lstm"
        self.cell = LSTMCell(size, config.controller_size) if recurrent else None
        self.hidden = None if recurrent else Linear(size, config.controller_size)

    def start(self, rows: int) -> RecurrentState | None:
        return None if self.cell is None else self.cell.start(rows)

    def forward(
        self, inputs: Tensor, state: RecurrentState | None
    ) -> tuple[Tensor, RecurrentState | None]:
        """(batch, input + reads) → (batch, controller), and its state."""
        if self.cell is not None:
            signals, state = self.cell(inputs, state)
        else:
            assert self.hidden is not None
            signals = self.hidden(inputs).tanh()
        return signals.clamp(-self.clip, self.clip), state


class Heads(nn.Module):
    """Heads that find their places in the memory.

    From the controller each gets a key and its controls: strength β, gate g, shift s, sharpening γ.
    """

    def __init__(self, config: NTMConfig, heads: int, extra: int = 0):
        super().__init__()
        self.heads, self.size, self.clip = heads, config.slot_size, config.clip
        controls = 3 + 2 * config.reach + 1
        self.parts = [config.slot_size, controls, extra]
        self.control = Linear(config.controller_size, heads * sum(self.parts))
        # The strength comes from the controller, so the score has none of its own.
        self.attention = Attention(
            Cosine(strength=None), NTMAddressing(), sides=("heads", "memory")
        )
        nn.init.xavier_uniform_(self.control.weight, gain=1.4)
        nn.init.normal_(self.control.bias, std=0.01)

    def address(
        self, signals: Tensor, memory: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What is read (batch, head, slot_size), where (batch, head, slot), and the rest of what
        the controller says (batch, head, extra)."""
        outputs = self.control(signals).clamp(-self.clip, self.clip)
        key, raw, rest = outputs.unflatten(-1, (self.heads, -1)).split(self.parts, dim=-1)
        read = self.attention(key.tanh(), memory, memory, carried=Controls.of(raw, weights))
        return read.context, read.weights, rest


class ReadHeads(Heads):
    """r = w M"""

    def __init__(self, config: NTMConfig):
        super().__init__(config, config.read_heads)

    def forward(self, signals: Tensor, memory: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """→ what was read (batch, head, slot_size), and where (batch, head, slot)."""
        reads, weights, _ = self.address(signals, memory, weights)
        return reads, weights


class WriteHeads(Heads):
    """M ← M ⊙ Π (1 − w eᵀ) + Σ w aᵀ: all heads erase before any adds

    Graves et al. (2014), section 3.2, equations 3 and 4.
    """

    def __init__(self, config: NTMConfig):
        super().__init__(config, config.write_heads, extra=2 * config.slot_size)

    def forward(
        self, signals: Tensor, memory: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """→ the memory after writing (batch, slot, slot_size), where (batch, head, slot), and what
        was added there (batch, head, slot_size)."""
        _, weights, rest = self.address(signals, memory, weights)
        erase, add = rest.chunk(2, dim=-1)  # (batch, head, slot_size)
        kept = 1 - weights.unsqueeze(-1) * erase.sigmoid().unsqueeze(-2)
        memory = memory * kept.prod(dim=1)  # (batch, slot, slot_size)
        added = add.tanh()
        return memory + weights.mT @ added, weights, added
