"""The loop, to be read in one sitting.

Everything it depends on is a function of the recipe and of `Progress`; whatever is random comes
from torch's generator, which a checkpoint holds. So a run that was killed and resumed goes
through the very same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.data.batches import Pairs, Words
from regard.data.feeds import Feed
from regard.training.carried import refilled, tensors_of
from regard.training.objectives import Objective, check_finite
from regard.training.optimizers import memory_of, optimizer_of, remember, shorten
from regard.training.placement import Placement, gathered
from regard.training.recipe import TrainingConfig
from regard.training.record import Record
from regard.training.saving import Checkpoint, Progress, averaged, part, save_checkpoint, under
from regard.training.schedules import factor
from regard.training.signals import Signals

Evaluate = Callable[[], dict[str, float]]
Tell = Callable[[str, dict[str, Any]], None]


def recompute_blocks(model: nn.Module) -> None:
    """Blocks of a stack keep their inputs only and are run again when their gradient is due."""
    for stack in (each for each in model.modules() if isinstance(each, nn.ModuleList)):
        for block in stack:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def share(batch: Words | Pairs, placement: Placement) -> Words | Pairs:
    """The rows of a batch that are this process's."""
    if placement.world == 1 or isinstance(batch, Pairs):
        return batch
    return batch.pick(torch.arange(placement.rank, len(batch.inputs), placement.world))


class Training:
    """A model on its way. `run` goes through the steps; the rest is what a step needs."""

    def __init__(
        self,
        model: nn.Module,
        feed: Feed,
        config: TrainingConfig,
        folder: Path,
        placement: Placement,
        evaluate: Evaluate,
        tell: Tell,
    ):
        self.model = model.to(placement.device)
        if config.checkpointing:
            recompute_blocks(model)
        self.feed, self.config, self.folder, self.placement = feed, config, folder, placement
        self.evaluate, self.tell = evaluate, tell
        self.objective = placement.wrapped(
            Objective(model, config.label_smoothing), config.sharding
        )
        self.optimizer = optimizer_of(model, config)
        self.names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
        self.step_once = torch.compile(self.objective) if config.compile else self.objective
        self.progress = Progress()
        self.carried: Any = None
        self.best: dict[str, Tensor] = {}
        self.ema: dict[str, Tensor] = {}
        self.record: Record | None = None

    # The road

    def run(self, signals: Signals) -> bool:
        """Train to the end; False if a signal asked to stop before it."""
        progress, started = self.progress, time.monotonic() - self.progress.seconds
        self.objective.train()
        while not self.done():
            self.step()
            progress.seconds = time.monotonic() - started
            self.tell("step", {"step": progress.step, "total": self.total_steps()})
            if progress.step % self.config.log_every == 0:
                self.log()
            evaluating = self.due(self.config.evaluate_every)
            if evaluating:
                self.judge()
            stopping = bool(self.placement.total(float(signals.asked)))
            if stopping or self.due(self.config.save_every, otherwise=evaluating):
                self.save()
            if stopping:
                return False
        if not progress.finished:
            self.finish()
        return True

    def step(self) -> None:
        """One optimizer step over `accumulate` batches, each target counting the same."""
        progress, config = self.progress, self.config
        batches = list(self.take())
        total = self.placement.total(sum(batch.tokens for _, batch in batches))
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate * self.rate_factor()
        for place, (where, batch) in enumerate(batches):
            last = place == len(batches) - 1
            with self.placement.silent(self.objective, last), self.precision():
                loss, state = self.step_once(batch, self.carried)
                check_finite(loss, progress.step + 1, *where)
                # DDP and FSDP average over processes; the sum over all targets is wanted.
                (loss * (self.placement.world / max(total, 1))).backward()
            self.carried = state.detach() if self.carries and state is not None else None
            progress.loss += loss.item()
            progress.tokens += batch.tokens
        if config.clip is not None:
            shorten(self.model, config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        progress.step += 1
        if config.ema:
            self.follow()

    def take(self) -> Iterator[tuple[tuple[int, int], Words | Pairs]]:
        """The batches of this step that are this process's share."""
        placement = self.placement
        if self.carries:
            for _ in range(self.config.accumulate):
                where = self.advance()
                batch = self.feed.batch(*where)
                yield where, share(batch, placement)
            return
        for turn in range(self.config.accumulate * placement.world):
            where = self.advance()
            if turn % placement.world == placement.rank:
                yield where, self.feed.batch(*where)

    def advance(self) -> tuple[int, int]:
        """The cursor, moved on by one; a new epoch begins with nothing carried."""
        progress = self.progress
        if progress.index >= self.feed.batches(progress.epoch):
            progress.epoch, progress.index, self.carried = progress.epoch + 1, 0, None
        where = (progress.epoch, progress.index)
        progress.index += 1
        return where

    # What a step needs

    @property
    def carries(self) -> bool:
        return bool(getattr(self.model, "carries", False)) and self.config.feed == "columns"

    def total_steps(self) -> int:
        """All steps of the run; epochs are taken to be as long as the first."""
        if self.config.steps is not None:
            return self.config.steps
        batches = (self.config.epochs or 0) * self.feed.batches(0)
        each = self.config.accumulate * (1 if self.carries else self.placement.world)
        return -(-batches // each)

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
        if otherwise is not None:
            return otherwise
        return progress.index >= self.feed.batches(progress.epoch)

    def precision(self) -> Any:
        if self.config.precision == "bf16":
            return torch.autocast(self.placement.device.type, torch.bfloat16)
        return nullcontext()

    def follow(self) -> None:
        """The exponential moving average of the weights takes a step towards them."""
        weights = self.placement.whole(self.model)
        if not self.ema:
            self.ema = {name: value.clone() for name, value in weights.items()}
            return
        for name, held in self.ema.items():
            held.lerp_(weights[name].to(held.dtype), 1 - self.config.ema)

    # What is told and kept

    def log(self) -> None:
        progress = self.progress
        loss = self.placement.total(progress.loss)
        tokens = self.placement.total(progress.tokens)
        values = {
            "step": progress.step,
            "epoch": progress.epoch,
            "loss": loss / max(tokens, 1),
            "rate": self.config.rate * self.rate_factor(),
            "seconds": round(progress.seconds, 3),
        }
        progress.loss, progress.tokens = 0.0, 0
        self.note("train", values, tokens=int(tokens))

    def judge(self) -> None:
        """Evaluate; remember the weights if they are the best so far."""
        progress = self.progress
        values = self.evaluate()
        progress.history.append(values["loss"])
        if progress.best is None or values["loss"] < progress.best:
            progress.best, progress.best_step = values["loss"], progress.step
            if self.config.restore_best:
                held = self.placement.whole(self.model)
                self.best = {name: value.detach().clone() for name, value in held.items()}
        self.note("valid", {"step": progress.step, "epoch": progress.epoch, **values})

    def note(self, event: str, values: dict[str, Any], **told: Any) -> None:
        if self.record is not None:
            self.record.write(event, **values)
        self.tell(event, {**values, **told, "total": self.total_steps()})

    def save(self) -> None:
        weights = self.placement.whole(self.model)
        memory = gathered(memory_of(self.optimizer, self.names))
        if self.placement.first:
            if self.record is not None:
                self.progress.record_length = self.record.length()
            extras = {"random": torch.get_rng_state()}
            for name, held in (("best", self.best), ("ema", self.ema)):
                extras |= under(name, held)
            for place, tensor in enumerate(tensors_of(self.carried)):
                extras[f"carried/{place:04d}"] = tensor
            checkpoint = Checkpoint(self.progress, weights, memory, extras)
            save_checkpoint(self.folder / "checkpoints", checkpoint, self.config.keep)
        self.placement.wait()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from here, bit for bit."""
        self.placement.fill(self.model, checkpoint.weights)
        remember(self.optimizer, self.names, checkpoint.memory)
        self.progress = checkpoint.progress
        self.best, self.ema = part(checkpoint.extras, "best"), part(checkpoint.extras, "ema")
        carried = [v for _, v in sorted(part(checkpoint.extras, "carried").items())]
        if carried:
            # A state of the right make, to be filled with the numbers that were saved.
            with torch.no_grad():
                features: Any = self.model.features
                _, state = features(self.feed.batch(0, 0), None)
            self.carried = refilled(state, iter(carried))
        torch.set_rng_state(checkpoint.extras["random"])

    def finish(self) -> None:
        """Choose the weights the run ends with, and say so."""
        self.progress.finished = True
        if self.config.average:
            last = averaged(self.folder / "checkpoints", self.config.average)
            self.placement.fill(self.model, last)
        elif self.ema or self.best:
            self.placement.fill(self.model, self.ema or self.best)
        values = {"step": self.progress.step, "best_step": self.progress.best_step}
        self.note("end", {**values, "threads": torch.get_num_threads()})
