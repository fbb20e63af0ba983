"""The results of a measurement: as data, in the layout of nccl-tests, as CSV, JSON and picture."""

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
    "RankFailure",
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


# The messages of ranks: results and failures. -------------------------------------
#
# They need no torch: the process that receives them would take the processor from the
# ranks that measure if it imported torch.


@dataclass(frozen=True)
class SizeRow:
    """The result of one size of one collective, the same on all ranks.

    Attributes:
        name: the function that was called.
        op: the collective that it implements.
        nbytes: bytes of the whole tensor.
        count: elements of one rank's part, or of the whole tensor if it has no parts.
        dtype: name of the elements' dtype.
        redop: ``sum``, or ``none``.
        root: the root rank, or −1 if there is none.
        seconds: mean time of one call on the slowest rank.
        algbw, busbw: algorithm and bus bandwidth, in bytes a second.
        wrong: number of wrong elements, on all ranks together.
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
class RankFailure:
    """The failure of a rank.

    Attributes:
        rank: its number.
        kind: ``raised`` or ``hung``; or ``lost``, if it cannot reach the other ranks.
        text: the reason.
        site: the line of the student's file, or an empty string.
    """

    rank: int
    kind: str
    text: str
    site: str = ""

    @property
    def place(self) -> str:
        """A clause that says where a rank hangs."""
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
    # a value that is too long for its column moves the others, with a space between
    return " ".join(value.rjust(width) for value, width in zip(values, _WIDTHS, strict=True))


def header(plan: BenchPlan, name: str, op: str, ranks: int) -> str:
    """Return the lines above the table of a function: what is measured, and the columns."""
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
    """Return a number with as many digits as nccl-tests prints."""
    return f"{number:.2f}" if number < 10_000 else f"{number:.0f}"


def _speed(number: float) -> str:
    return f"{number / GIGA:.2f}" if number >= GIGA else f"{number / GIGA:.4f}"


def line(row: SizeRow) -> str:
    """Return the line of one size."""
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
    """Return the mean of the bus bandwidths, in bytes a second."""
    return sum(row.busbw for row in rows) / len(rows)


def footer(rows: Sequence[SizeRow]) -> str:
    """Return the lines below a table, as in nccl-tests."""
    wrong = sum(row.wrong for row in rows)
    return (
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
        f"# Avg bus bandwidth    : {average(rows) / GIGA:g}"
    )


def to_csv(rows: Iterable[SizeRow]) -> str:
    """Return the rows as CSV, in bytes, seconds and bytes a second."""
    out = io.StringIO()
    writer: Any = None
    for row in rows:
        # names are identifiers, so no cell can be a formula to a spreadsheet
        fields = asdict(row)
        if writer is None:
            writer = csv.DictWriter(out, list(fields), lineterminator="\n")
            writer.writeheader()
        writer.writerow(fields)
    return out.getvalue()


def to_json(plan: BenchPlan, rows: Sequence[SizeRow], ranks: int) -> str:
    """Return the plan, rows and averages as one JSON object, in bytes, seconds, bytes a second."""
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


# The picture: bus bandwidth against size. -----------------------------------------

#: Suffixes of the files that a picture can be saved as.
SUFFIXES = (".png", ".svg", ".pdf")

#: Markers, so that lines differ in shape as well as in colour.
_MARKERS = "osD^vP*X<>"


def save(path: Path, rows: Sequence[SizeRow], ranks: int) -> None:
    """Save a picture with one line for every name."""
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
