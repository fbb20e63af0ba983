"""Options that several commands share, and the texts that their values may be."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError

from grader.course.bench.plan import count
from headcount.core.resource_limits import DEFAULTS

__all__ = ["STUDENT", "add_jobs", "add_json", "add_sandbox", "add_seconds", "add_seed", "seconds"]

#: How a command line names a student.
STUDENT = "a student, by key, number, address or name"


def seconds(text: str) -> float:
    """Return an option's number of seconds.

    Raises:
        ArgumentTypeError: it is none, or not above 0.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ArgumentTypeError(f"a number of seconds above 0 is needed, not {text!r}")
    return found


def add_json(parser: ArgumentParser, printed: str = "object") -> None:
    """Let a program read what the command prints."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON {printed}")


def add_seed(parser: ArgumentParser, why: str) -> None:
    """Let the inputs be drawn from a number that is given."""
    parser.add_argument("--seed", type=int, help=why)


def add_jobs(parser: ArgumentParser, what: str) -> None:
    """Let so many answers or submissions be judged at a time."""
    parser.add_argument("--jobs", type=count, metavar="N", help=f"{what} at a time")


def add_sandbox(parser: ArgumentParser, what: str) -> None:
    """Let answers or submissions be judged without a sandbox."""
    parser.add_argument(
        "--sandbox",
        choices=["auto", "bubblewrap", "none"],
        default="auto",
        help=f"auto is bubblewrap; none trusts every {what}",
    )


def add_seconds(parser: ArgumentParser, more: str) -> None:
    """Let a call take longer; ``more`` goes on behind the default."""
    parser.add_argument(
        "--seconds",
        type=seconds,
        metavar="S",
        help="seconds that a rank may compute, or all may sleep, in one call of an answer"
        f" (default {DEFAULTS.call:g}{more}",
    )
