"""What ranks say: what was measured, or what went wrong.

Whoever only listens need not import torch for it, which would take the processor
from those who measure.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Complaint", "Row"]


@dataclass(frozen=True)
class Row:
    """One size of one collective, as all ranks know it.

    Attributes:
        name: what was called.
        op: the collective that it is.
        nbytes: of the whole tensor.
        count: elements of one rank's part, or of the whole if it has no parts.
        dtype: of the elements.
        redop: ``sum``, or ``none``.
        root: a rank, or −1.
        seconds: of one call: the slowest rank's mean.
        algbw, busbw: bytes a second.
        wrong: elements that are not as they should be, on all ranks together.
    """

    name: str
    op: str
    nbytes: int
    count: int
    dtype: str
    redop: str
    root: int
    seconds: float
    algbw: float
    busbw: float
    wrong: int


@dataclass(frozen=True)
class Complaint:
    """What went wrong on a rank.

    Attributes:
        rank: which one.
        kind: ``raised`` or ``hung``; or ``lost``, without the other ranks.
        text: what.
        site: the student's line, if it was one of the student's.
    """

    rank: int
    kind: str
    text: str
    site: str = ""

    @property
    def place(self) -> str:
        """Where a rank is that hangs."""
        return f"is at {self.site}" if self.site else "is in no line of the file"

    def __str__(self) -> str:
        if self.kind == "hung":
            return f"{self.text}: rank {self.rank} {self.place}"
        where = f", {self.site}" if self.site else ""
        return f"rank {self.rank}{where}: {self.text}"
