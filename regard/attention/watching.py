"""Record from outside what every attention of a model returns, under its dotted path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from regard.attention.attended import Attended
from regard.attention.attention import Attention
from regard.attention.foreign import catch_calls, check_was_seen
from regard.attention.heads import MultiHead
from regard.attention.look_sources import stitch
from regard.attention.recording import Session, activate
from regard.naming import suggest


class Seen(dict[str, list[Attended]]):
    """What was recorded: a list of calls for every path."""

    def __missing__(self, path: str) -> list[Attended]:
        hint = suggest(path, self) if self else "there are: none"
        raise KeyError(f"no attention was seen at {path!r}; {hint}")

    def stitch(self, path: str, row: int = 0) -> Tensor:
        """One map from a prompt and the steps after it: (head, query, key), zeros for the future.

        with watch(model) as seen:
            model.generate(ids, max_new_tokens=20)
        seen.stitch("transformer.h.3.attn")
        """
        return stitch(self[path], row)


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention of ours in `model` by its dotted path; a model that is one is "attention".

    The attention inside a multi-head is known by the multi-head's own path, and one that is used
    in two places by both.
    """
    found = {}
    for path, part in walk_modules(model):
        if isinstance(part, Attention):
            parent = path.rpartition(".")[0]
            owner = model.get_submodule(parent)
            inside = isinstance(owner, MultiHead) and owner.attention is part
            found[_readable_path(parent if inside else path)] = part
    return found


def walk_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module with every path it has."""
    return model.named_modules(remove_duplicate=False)


def known_paths(model: nn.Module) -> dict[int, list[str]]:
    """The paths of every module by its identity, under which its attention calls are recorded."""
    paths: dict[int, list[str]] = {}
    for path, attention in attentions(model).items():
        paths.setdefault(id(attention), []).append(path)
    for path, part in walk_modules(model):
        compiled = "_orig_mod" in part._modules  # a wrapper, with the module itself inside
        if not compiled and not isinstance(part, Attention):
            paths.setdefault(id(part), []).append(_readable_path(path))
    return paths


def _readable_path(path: str) -> str:
    """The path a module would have without the wrapper that torch.compile puts around it."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod") or "attention"


@contextmanager
def watch(model: nn.Module, gradients: bool = False) -> Iterator[Seen]:
    """Record every attention call made in `model`, whoever wrote it.

    with watch(model) as seen:
        model(batch)
    seen["decoder.attention"][-1].weights  # computed now, since now somebody asks

    Our own attentions, and every call of torch's `scaled_dot_product_attention`, are recorded under
    the path of the module that makes them; the kernel stays. Only this thread or task is watched. A
    record holds queries, keys and mask, no context.

    With `gradients` the weights are written out during the forward pass and keep their gradient:
    after `loss.backward()` it is in `seen[path][-1].weights.grad`.
    """
    seen = Seen({path: [] for path in attentions(model)})

    def receive(paths: list[str], attended: Attended) -> None:
        for path in paths:
            seen.setdefault(path, []).append(attended)

    session = Session(model, known_paths(model), receive=receive, writes_weights=gradients)
    with activate(session), catch_calls(session):
        yield seen
    if not any(seen.values()):
        check_was_seen(session)
