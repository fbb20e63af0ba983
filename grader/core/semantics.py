"""By whose rules a run is judged: those of the transport that carries it, or NCCL's."""

from __future__ import annotations

from enum import Enum

from grader.core.errors import RequestError

__all__ = ["Semantics", "semantics_named"]


class Semantics(str, Enum):
    """Whose rules decide whether a program may hang."""

    #: those of the run itself
    GLOO = "gloo"
    #: besides these, NCCL's, by which the record of a run that ended well is judged
    NCCL = "nccl"

    __str__ = str.__str__


def semantics_named(name: str) -> Semantics:
    """Return the semantics of a name.

    Raises:
        RequestError: there are none of that name.
    """
    try:
        return Semantics(name)
    except ValueError:
        names = " or ".join(repr(one.value) for one in Semantics)
        raise RequestError(f"semantics is {names}, not {name!r}") from None
