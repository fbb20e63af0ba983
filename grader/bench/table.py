"""What was measured, in the layout of nccl-tests, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.bench.plan import DTYPES, BenchPlan

__all__ = [
    "Complaint",
    "SizeRow",
    "SUFFIXES",
    "average",
    "footer",
    "header",
    "line",
    "save",
    "to_csv",
    "to_json",
]


# What ranks say: what was measured, or what went wrong. ---------------------------
#
# Whoever only listens need not import torch for it, which would take the processor
# from those who measure.


@dataclass(frozen=True)
class SizeRow:
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


# The table. -----------------------------------------------------------------------

#: Bytes of a gigabyte: bandwidths are decimal.
GIGA = 1e9

#: Characters of each column.  With the spaces between them it is a terminal's 80.
_WIDTHS = (11, 12, 8, 5, 4, 9, 8, 7, 8)
_NAMES = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_UNITS = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")


def _columns(values: Iterable[str]) -> str:
    # what is too long for its column moves the others, and still stands apart from them
    return " ".join(value.rjust(width) for value, width in zip(values, _WIDTHS, strict=True))


def header(plan: BenchPlan, name: str, op: str, ranks: int) -> str:
    """What is measured, and the names of the columns."""
    whose = "torch's own" if plan.file is None else "of the file"
    what = name if name == op else f"{name} ({op})"
    return "\n".join(
        (
            f"# {what}, {whose}; ranks: {ranks}, backend: {plan.backend}",
            f"# warmup iters: {plan.warmup}, iters: {plan.iterations}",
            "#" + _columns(_NAMES)[1:],
            ("#" + _columns(_UNITS)[1:]).rstrip(),
        )
    )


def _four(number: float) -> str:
    """Digits as nccl-tests has them: never more than fit, at least what can be read."""
    return f"{number:.2f}" if number < 10_000 else f"{number:.0f}"


def _speed(number: float) -> str:
    return f"{number / GIGA:.2f}" if number >= GIGA else f"{number / GIGA:.4f}"


def line(row: SizeRow) -> str:
    """One size."""
    return _columns(
        (
            str(row.nbytes),
            str(row.count),
            DTYPES[row.dtype],
            row.redop,
            str(row.root),
            _four(row.seconds * 1e6),
            _speed(row.algbw),
            _speed(row.busbw),
            str(row.wrong),
        )
    )


def average(rows: Sequence[SizeRow]) -> float:
    """The mean of the bus bandwidths, in bytes a second."""
    return sum(row.busbw for row in rows) / len(rows)


def footer(rows: Sequence[SizeRow]) -> str:
    """What nccl-tests ends with."""
    wrong = sum(row.wrong for row in rows)
    return (
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
        f"# Avg bus bandwidth    : {average(rows) / GIGA:g}"
    )


def to_csv(rows: Iterable[SizeRow]) -> str:
    """A table for spreadsheets: bytes, seconds, bytes a second."""
    out = io.StringIO()
    writer: Any = None
    for row in rows:
        # a name is an identifier, of the course or of a file: no text here can be a formula
        fields = asdict(row)
        if writer is None:
            writer = csv.DictWriter(out, list(fields), lineterminator="\n")
            writer.writeheader()
        writer.writerow(fields)
    return out.getvalue()


def to_json(plan: BenchPlan, rows: Sequence[SizeRow], ranks: int) -> str:
    """One object: the request, the rows, the averages; bytes, seconds, bytes a second."""
    names = dict.fromkeys(row.name for row in rows)
    found = {
        "schema_version": 1,
        "file": plan.file,
        "ranks": ranks,
        "backend": plan.backend,
        "dtype": plan.dtype,
        "warmup": plan.warmup,
        "iterations": plan.iterations,
        "rows": [asdict(row) for row in rows],
        "average_busbw": {name: average([r for r in rows if r.name == name]) for name in names},
    }
    return json.dumps(found, ensure_ascii=False)


# What was measured, as a picture: bus bandwidth against size. ---------------------

#: What a picture can be saved as.
SUFFIXES = (".png", ".svg", ".pdf")

#: Told apart by shape as well as by colour.
_MARKERS = "osD^vP*X<>"


def save(path: Path, rows: Sequence[SizeRow], ranks: int) -> None:
    """Draw one line for every name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for number, name in enumerate(dict.fromkeys(row.name for row in rows)):
        mine = [row for row in rows if row.name == name]
        axes.plot(
            [row.nbytes for row in mine],
            [row.busbw / GIGA for row in mine],
            marker=_MARKERS[number % len(_MARKERS)],
            color=f"C{number % 10}",
            label=name,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("size of the whole tensor in bytes")
    axes.set_ylabel("bus bandwidth in GB/s")
    axes.set_title(f"{ranks} ranks" if ranks > 1 else "1 rank")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
