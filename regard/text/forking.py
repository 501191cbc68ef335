"""Threads of `tokenizers` do not survive a fork, so a forked process goes without them."""

import os

PARALLELISM_VARIABLE = "TOKENIZERS_PARALLELISM"


class _Fork:
    """Turns the library's threads off while the process forks; the child keeps them off.

    Left alone, the library warns in every child. A user who set the variable has decided already.
    """

    undecided = False

    def before(self) -> None:
        self.undecided = PARALLELISM_VARIABLE not in os.environ
        if self.undecided:
            os.environ[PARALLELISM_VARIABLE] = "false"

    def after_in_parent(self) -> None:
        if self.undecided:
            os.environ.pop(PARALLELISM_VARIABLE, None)


def disable_parallelism_on_fork() -> None:
    """Have forked processes use the tokenizers library without its threads.

    Called once, when `regard.text` is imported. Systems that cannot fork need nothing.
    """
    if hasattr(os, "register_at_fork"):
        fork = _Fork()
        os.register_at_fork(before=fork.before, after_in_parent=fork.after_in_parent)
