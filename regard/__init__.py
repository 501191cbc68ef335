"""regard: sequence models of the attention lineage, to be trained, run and looked into.

import regard

with regard.watch(model) as seen:   # any nn.Module
    model(batch)
seen["layers.3.attention"][-1].weights

regard.look(model, tokenizer, "a text").save("look.html")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.attention import edit, watch
    from regard.lectures import play
    from regard.looking import look
    from regard.running import load, train

__version__ = "0.1.0"
__all__ = ["__version__", "edit", "load", "look", "play", "train", "watch"]


def __getattr__(name: str) -> Any:
    """Fetch a public name when it is first used: `regard --help` must not wait for torch."""
    if name in ("edit", "watch"):
        from regard import attention

        return getattr(attention, name)
    if name in ("load", "train"):
        from regard import running

        return getattr(running, name)
    if name == "look":
        from regard import looking

        return looking.look
    if name == "play":
        from regard import lectures

        return lectures.play
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
