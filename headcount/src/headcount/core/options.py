"""Options that several commands share, and the texts that their values may be."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from headcount.core.errors import RequestError

__all__ = ["Parser", "add_cluster_options", "add_json", "algorithms", "seconds", "whole_number"]


class Parser(argparse.ArgumentParser):
    """A parser that raises the error of a wrong request as one line."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with where the options are described."""
        raise RequestError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse arguments of which none may be unknown; of a command they are the command's."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            names = re.findall(r"--[\w-]+", self.format_help())
            near = difflib.get_close_matches(rest[0].partition("=")[0], names, 1)
            mend = f": did you mean {near[0]}?" if near else ""
            self.error(f"{' '.join(rest)} is not known here{mend}")
        return found, rest


def whole_number(text: str, least: int = 1) -> int:
    """Return an option's whole number.

    Raises:
        argparse.ArgumentTypeError: it is none, or below the least, or has more than 12 digits.
    """
    digits = text.removeprefix("-")
    if not digits.isdecimal() or len(digits) > 12 or int(text) < least:
        short = ", of 12 digits at most," * (len(digits) > 12)
        raise argparse.ArgumentTypeError(
            f"a whole number from {least} on{short} is needed, not {text[:40]!r}"
        )
    return int(text)


def seconds(text: str) -> float:
    """Return an option's number of seconds.

    Raises:
        argparse.ArgumentTypeError: it is none, or not above 0.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0 is needed, not {text!r}")
    return found


def _eager(text: str) -> int:
    return whole_number(text, least=-1)


def add_json(add: Callable[..., object]) -> None:
    """Add the option that writes a report as data, too."""
    add("--json", metavar="FILE", help="write the report as JSON, too; - is standard output")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how many ranks are simulated, and what their messages cost."""
    add = parser.add_argument
    add("--ranks", type=whole_number, metavar="N", required=True, help="how many ranks to simulate")
    add("--alpha", type=float, metavar="S", help="seconds of a message (1e-6)")
    add("--beta", type=float, metavar="S/B", help="seconds of each of its bytes (1e-10)")
    add("--cluster", metavar="NAME", help="a cluster by name, or a .json file, instead")
    add(
        "--eager",
        type=_eager,
        metavar="B",
        default=-1,
        help="a send of up to so many bytes does not wait for its receive (-1: every send waits)",
    )
    add(
        "--algorithm",
        action="append",
        default=[],
        metavar="COLLECTIVE=NAME",
        help="of a built-in collective, such as all_reduce=ring",
    )


def algorithms(texts: Sequence[str]) -> dict[str, str]:
    """Return the algorithms that were asked for, by collective.

    Raises:
        RequestError: a text names none.
    """
    found = {}
    for text in texts:
        collective, equals, name = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"--algorithm wants COLLECTIVE=NAME, as in all_reduce=ring, not {text!r}"
            )
        found[collective] = name
    return found
