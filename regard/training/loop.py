"""The training loop, to be read in one sitting.

Everything it depends on is a function of the recipe and of `Progress`; whatever is random comes
from torch's generator, which a checkpoint holds. So a run that was killed and resumed goes
through the very same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.data.batches import Batch
from regard.metrics import is_better, metric
from regard.tasks.objective import Outcome, Totals, add_counts
from regard.tasks.scoring import carries_state
from regard.training.carried_state import flatten_state, refill
from regard.training.finite import Place, check_step, check_weights
from regard.training.optimizers import (
    clip_gradients,
    gradient_norm,
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
    parameter_names,
)
from regard.training.placement import Placement, gather, shard_like
from regard.training.preparing import Work
from regard.training.record import Record
from regard.training.saving import (
    Checkpoint,
    Progress,
    add_prefix,
    average_weights,
    save_checkpoint,
    select_prefix,
)
from regard.training.schedules import factor
from regard.training.signals import Signals

Probe = Callable[[int], None]
Report = Callable[[str, dict[str, Any]], None]


def recompute_blocks(model: nn.Module) -> None:
    """Gradient checkpointing: blocks of a stack keep their inputs only and are run again when their
    gradient is due."""
    for stack in (each for each in model.modules() if isinstance(each, nn.ModuleList)):
        for block in stack:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def process_name(rank: int) -> str:
    """Under what a checkpoint holds what is a process's own; the first one's needs no name."""
    return f"process/{rank:04d}"


class Training:
    """Trains a model. `run` goes through the steps; the rest is what a step needs."""

    def __init__(
        self, work: Work, folder: Path, placement: Placement, probe: Probe, report: Report
    ):
        self.work, self.task, self.config = work, work.task, work.recipe.training
        self.model = work.model.to(placement.device)
        if self.config.checkpointing:
            recompute_blocks(self.model)
        self.feed, self.valid = work.train, work.valid
        self.folder, self.placement, self.probe, self.report = folder, placement, probe, report
        self.select = work.recipe.evaluation.select or self.task.select
        self.carries = carries_state(self.model, self.feed)
        self.objective = self.task.objective(self.model).to(placement.device)
        self.wrapped = placement.wrap(self.objective, self.config.sharding)
        self.optimizer = make_optimizer(self.objective, self.config)
        self.names = parameter_names(self.objective)
        self.forward = torch.compile(self.wrapped) if self.config.compile else self.wrapped
        self.progress = Progress()
        self.carried: Any = None
        self.best: dict[str, Tensor] = {}
        self.ema: dict[str, Tensor] = {}
        self.record: Record | None = None

    # The steps

    def run(self, signals: Signals) -> bool:
        """Train to the end; False if a signal asked to stop before it."""
        progress, started = self.progress, time.monotonic() - self.progress.seconds
        self.wrapped.train()
        while not self.done():
            self.step()
            progress.seconds = time.monotonic() - started
            self.report("step", {"step": progress.step, "total": self.total_steps()})
            if progress.step % self.config.log_every == 0:
                self.log()
            evaluating = self.due(self.config.evaluate_every)
            if evaluating:
                self.evaluate()
            stopping = bool(self.placement.total(float(signals.stop_requested)))
            timely = self.due(self.config.save_every, otherwise=evaluating)
            if stopping or timely:
                progress.interim = not timely
                self.save()
            if stopping:
                return False
        if not progress.finished:
            self.finish()
        return True

    def step(self) -> None:
        """One optimizer step over `accumulate` batches, each target counting the same."""
        progress, config, placement = self.progress, self.config, self.placement
        places = self.advance()
        batches = self.local_batches(places)
        counts = [self.objective.counts(batch) for _, batch in batches]
        total_counts = placement.totals(add_counts(counts))
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate * self.rate_factor()
        totals = Totals.zero()
        for number, ((_, index), batch) in enumerate(batches):
            # A new epoch begins with nothing carried.
            state = self.carried if index > 0 else None
            last = number == len(batches) - 1
            with placement.no_sync(self.wrapped, last), self.precision():
                outcome = self.forward(batch, state)
                self.loss(outcome, total_counts).backward()
            state = outcome.state
            self.carried = state.detach() if self.carries and state is not None else None
            totals.add(outcome, counts[number])
        # Of all processes, so that all of them stop or none does.
        totals = Totals(placement.totals(totals.sums), placement.totals(totals.counts))
        means, norm = totals.means(), gradient_norm(self.objective)
        loss = self.objective.loss(means)
        check_step(loss, norm.item(), progress.step + 1, places, self.checkpoints)
        if config.clip is not None:
            clip_gradients(self.objective, config.clip, norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.objective.finish_step(means)
        progress.step += 1
        Totals(progress.sums, progress.counts).merge(totals)
        progress.tokens += int(placement.total(sum(batch.tokens for _, batch in batches)))
        if config.ema:
            self.update_average()

    def loss(self, outcome: Outcome, counts: dict[str, float]) -> Tensor:
        """Σ weight · part / count, with the counts of all batches of the step.

        DDP and FSDP average over processes; the sum over all of them is wanted.
        """
        world = self.placement.world
        parts = [
            outcome.parts[name] * (weight * world / max(counts[name], 1))
            for name, weight in self.objective.weights.items()
        ]
        return torch.stack(parts).sum() if len(parts) > 1 else parts[0]

    def advance(self) -> list[Place]:
        """Move the cursor over the next step; where its batches stand, all processes' together."""
        progress, places = self.progress, []
        for _ in range(self.batches_a_step):
            if progress.index >= self.feed.batches(progress.epoch):
                progress.epoch, progress.index = progress.epoch + 1, 0
            places.append((progress.epoch, progress.index))
            progress.index += 1
        return places

    def local_batches(self, places: list[Place]) -> list[tuple[Place, Batch]]:
        """The batches of a step that are this process's; of columns, its rows of each."""
        rank, world = self.placement.rank, self.placement.world
        if self.carries:
            return [(place, self.placement.local_rows(self.feed.batch(*place))) for place in places]
        return [(place, self.feed.batch(*place)) for place in places[rank::world]]

    # What a step needs

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def batches_a_step(self) -> int:
        """Of all processes together; those who share out columns read the same batch."""
        return self.config.accumulate * (1 if self.carries else self.placement.world)

    def total_steps(self) -> int:
        """All steps of the run; epochs are taken to be as long as the first."""
        if self.config.steps is not None:
            return self.config.steps
        batches = (self.config.epochs or 0) * self.feed.batches(0)
        return -(-batches // self.batches_a_step)

    def done(self) -> bool:
        patience, history = self.config.patience, self.progress.history
        if patience is not None and len(history) > patience:
            least = min(history)
            if history.index(least) < len(history) - patience:
                return True
        return self.progress.step >= self.total_steps()

    def rate_factor(self) -> float:
        progress = self.progress
        epoch = progress.epoch + (progress.index - 1) / max(self.feed.batches(progress.epoch), 1)
        return factor(
            self.config.schedule, self.total_steps(), progress.step, epoch, progress.history
        )

    def due(self, every: int | None, otherwise: bool | None = None) -> bool:
        """Whether it is time: every so many steps, or at the end of each epoch, and at the end."""
        progress = self.progress
        if progress.step >= self.total_steps():
            return True
        if every is not None:
            return progress.step % every == 0
        return self.epoch_ended() if otherwise is None else otherwise

    def epoch_ended(self) -> bool:
        """Whether the last step took the last batch of an epoch, and perhaps some of the next."""
        index = self.progress.index
        return index >= self.feed.batches(self.progress.epoch) or index < self.batches_a_step

    def precision(self) -> Any:
        if self.config.precision == "bf16":
            return torch.autocast(self.placement.device.type, torch.bfloat16)
        return nullcontext()

    def update_average(self) -> None:
        """The exponential moving average of the weights takes a step towards them."""
        weights = self.placement.full_state(self.model)
        if not self.ema:
            self.ema = {name: value.clone() for name, value in weights.items()}
            return
        for name, held in self.ema.items():
            if held.is_floating_point():
                held.lerp_(weights[name].to(held.dtype), 1 - self.config.ema)
            else:
                held.copy_(weights[name])  # a counter or a mask, which has no mean

    # What is recorded and saved

    def log(self) -> None:
        progress, tokens = self.progress, self.progress.tokens
        means = Totals(progress.sums, progress.counts).means()
        values = {
            "step": progress.step,
            "epoch": progress.epoch,
            **means,
            "loss": self.objective.loss(means),
            "rate": self.config.rate * self.rate_factor(),
            "seconds": round(progress.seconds, 3),
        }
        progress.sums, progress.counts, progress.tokens = {}, {}, 0
        self.record_event("train", values, tokens=tokens, metrics=self.objective.metrics(means))

    def evaluate(self) -> None:
        """Look at the probes; score the validation data, if any, and keep the best weights.

        With a moving average it is the average that is looked at, scored and kept.
        """
        with self.average_in_place():
            self.evaluate_weights()

    @contextmanager
    def average_in_place(self) -> Iterator[None]:
        """Within the `with`, the weights are those of the moving average, if there is one."""
        if not self.ema:
            yield
            return
        raw = {k: v.clone() for k, v in self.placement.full_state(self.model).items()}
        self.placement.load_full_state(self.model, self.ema)
        yield
        self.placement.load_full_state(self.model, raw)

    def evaluate_weights(self) -> None:
        progress = self.progress
        self.probe(progress.step)
        if self.valid is None:
            return
        values = self.task.evaluate(
            self.objective, self.valid, self.work.resources, [self.select], self.wrapped
        )
        value = values[self.select]
        progress.history.append(-value if metric(self.select).higher_is_better else value)
        if progress.best is None or is_better(self.select, value, progress.best):
            progress.best, progress.best_step = value, progress.step
            if self.config.restore_best:
                weights = self.placement.full_state(self.model)
                self.best = {name: value.detach().clone() for name, value in weights.items()}
        self.record_event("valid", {"step": progress.step, "epoch": progress.epoch, **values})

    def record_event(self, event: str, values: dict[str, Any], **only_reported: Any) -> None:
        if self.record is not None:
            self.record.write(event, **values)
        self.report(event, {**values, **only_reported, "total": self.total_steps()})

    def save(self) -> None:
        weights = self.placement.full_state(self.model)
        check_weights(self.model, weights, self.progress.step, self.checkpoints)
        optimizer = gather(optimizer_tensors(self.optimizer, self.names))
        objective = gather(self.objective.own_state())
        carried = {f"{place:04d}": held for place, held in enumerate(flatten_state(self.carried))}
        own = {"random": torch.get_rng_state(), **add_prefix("carried", carried)}
        states = self.placement.all_gather(own)
        if self.placement.first:
            if self.record is not None:
                self.progress.record_length = self.record.length()
            extras = {**states[0], **add_prefix("best", self.best), **add_prefix("ema", self.ema)}
            extras |= add_prefix("objective", objective)
            for rank, held in enumerate(states[1:], start=1):
                extras |= add_prefix(process_name(rank), held)
            checkpoint = Checkpoint(self.progress, weights, optimizer, extras)
            save_checkpoint(self.checkpoints, checkpoint, self.config.keep)
        self.placement.barrier()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from here, bit for bit.

        With another number of processes than before there is no such thing: then all of them have
        the first one's random state, and nothing is carried.
        """
        extras, placement = checkpoint.extras, self.placement
        placement.load_full_state(self.model, checkpoint.weights)
        now = self.objective.own_state()
        objective = {
            k: shard_like(v, now[k]) for k, v in select_prefix(extras, "objective").items()
        }
        self.objective.load_state_dict(objective, strict=False)
        load_optimizer_tensors(self.optimizer, self.names, checkpoint.optimizer)
        self.progress = checkpoint.progress
        self.best, self.ema = select_prefix(extras, "best"), select_prefix(extras, "ema")
        own = extras if placement.first else select_prefix(extras, process_name(placement.rank))
        if 1 + sum(name.endswith("/random") for name in extras) != placement.world:
            own = {"random": extras["random"]}
        carried = [tensor for _, tensor in sorted(select_prefix(own, "carried").items())]
        if carried:
            # A state of the right make, to be filled with the numbers that were saved.
            with torch.no_grad():
                state = self.wrapped(self.feed.batch(0, 0), None).state
            self.carried = refill(state, iter(carried))
        torch.set_rng_state(own["random"])

    def finish(self) -> None:
        """Choose the weights the run ends with, and say so."""
        self.progress.finished, self.progress.interim = True, False
        if self.config.average:
            last = average_weights(self.checkpoints, self.config.average)
            self.placement.load_full_state(self.model, last)
        elif self.best or self.ema:
            self.placement.load_full_state(self.model, self.best or self.ema)
        values = {"step": self.progress.step}
        if self.progress.best is not None:
            values["best_step"] = self.progress.best_step
        self.record_event("end", {**values, "threads": torch.get_num_threads()})
