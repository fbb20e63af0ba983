"""Options that several commands of the grader share."""

from __future__ import annotations

from argparse import ArgumentParser

from headcount.core.options import seconds, whole_number
from headcount.core.resource_limits import DEFAULTS

__all__ = ["STUDENT", "add_jobs", "add_json", "add_sandbox", "add_seconds", "add_seed"]

#: How a command line names a student.
STUDENT = "a student, by key, number, address or name"


def add_json(parser: ArgumentParser, printed: str = "object") -> None:
    """Let a program read what the command prints."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON {printed}")


def add_seed(parser: ArgumentParser, why: str) -> None:
    """Let the inputs be drawn from a number that is given."""
    parser.add_argument("--seed", type=int, help=why)


def add_jobs(parser: ArgumentParser, what: str) -> None:
    """Let so many answers or submissions be judged at a time."""
    parser.add_argument("--jobs", type=whole_number, metavar="N", help=f"{what} at a time")


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
