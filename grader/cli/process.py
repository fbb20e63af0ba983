"""What all commands print with; what they do as a process is in :mod:`headcount.core.commands`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headcount.core import commands
from headcount.core.commands import stop_if_pressed

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["say", "show", "stop_if_pressed"]

#: Prints a sentence on standard error, in one line, if it can be.
say = partial(commands.say, "grader")


def show(report: RenderableType) -> None:
    """Print a report for people."""
    from rich.console import Console

    Console(highlight=False).print(report)
