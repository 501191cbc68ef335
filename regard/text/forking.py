"""Threads of `tokenizers` do not survive a fork, so a forked process goes without them."""

import os

SWITCH = "TOKENIZERS_PARALLELISM"


class _Fork:
    """Holds the switch off while the process divides; the child keeps it so.

    Left alone, the library warns in every child. A user who set the switch has decided already.
    """

    undecided = False

    def before(self) -> None:
        self.undecided = SWITCH not in os.environ
        if self.undecided:
            os.environ[SWITCH] = "false"

    def after_in_parent(self) -> None:
        if self.undecided:
            os.environ.pop(SWITCH, None)


def mind_forks() -> None:
    """Called once, when the room is entered. Systems that cannot fork need nothing."""
    if hasattr(os, "register_at_fork"):
        fork = _Fork()
        os.register_at_fork(before=fork.before, after_in_parent=fork.after_in_parent)
