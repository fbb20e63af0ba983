"""By whose rules a run is judged: those of what carries its messages, or NCCL's as well."""

from __future__ import annotations

import argparse
from enum import Enum

from headcount.core.errors import RequestError

__all__ = ["Semantics", "add_semantics", "semantics_named"]


class Semantics(str, Enum):
    """Whose rules decide whether a program may hang."""

    #: nothing more than what the run itself shows
    GLOO = "gloo"
    #: NCCL's rules besides, by which the record of a run that ended well is judged
    NCCL = "nccl"

    __str__ = str.__str__


def semantics_named(name: str) -> Semantics:
    """Return the semantics that have a name.

    Raises:
        RequestError: there are none of that name.
    """
    try:
        return Semantics(name)
    except ValueError:
        names = " or ".join(repr(one.value) for one in Semantics)
        raise RequestError(f"semantics is {names}, not {name!r}") from None


def add_semantics(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument(
        "--semantics",
        choices=[one.value for one in Semantics],
        default=Semantics.GLOO.value,
        help="nccl: what ends well here fails if it could hang or fail on NCCL (default: gloo)",
    )
