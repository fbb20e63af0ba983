"""What was measured, in the layout of nccl-tests, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from grader.bench.plan import DTYPES, Plan
from grader.bench.results import Row

__all__ = ["average", "footer", "header", "line", "to_csv", "to_json"]

#: Bytes of a gigabyte: bandwidths are decimal.
GIGA = 1e9

#: Characters of each column.  With the spaces between them it is a terminal's 80.
_WIDTHS = (11, 12, 8, 5, 4, 9, 8, 7, 8)
_NAMES = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_UNITS = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")


def _columns(values: Iterable[str]) -> str:
    # what is too long for its column moves the others, and still stands apart from them
    return " ".join(value.rjust(width) for value, width in zip(values, _WIDTHS, strict=True))


def header(plan: Plan, name: str, op: str, ranks: int) -> str:
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


def line(row: Row) -> str:
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


def average(rows: Sequence[Row]) -> float:
    """The mean of the bus bandwidths, in bytes a second."""
    return sum(row.busbw for row in rows) / len(rows)


def footer(rows: Sequence[Row]) -> str:
    """What nccl-tests ends with."""
    wrong = sum(row.wrong for row in rows)
    return (
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
        f"# Avg bus bandwidth    : {average(rows) / GIGA:g}"
    )


def to_csv(rows: Iterable[Row]) -> str:
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


def to_json(plan: Plan, rows: Sequence[Row], ranks: int) -> str:
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
