"""The command ``bench``, and its results: a table as of nccl-tests, CSV, JSON and a picture.

The ranks are those that it starts, or it is itself one of ``torchrun``'s.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from grader.course.bench.plan import DTYPES, BenchPlan, RankFailure, SizeRow, plan_of
from grader.course.costs import sweep
from headcount.core.errors import RequestError
from headcount.launch.launchers import use_one_thread

__all__ = [
    "Sinks",
    "SUFFIXES",
    "average",
    "bench",
    "footer",
    "header",
    "line",
    "save",
    "serve",
    "to_csv",
    "to_json",
    "under_torchrun",
]


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


def _four_digits(number: float) -> str:
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
            _four_digits(row.seconds * 1e6),
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


# The command. ---------------------------------------------------------------------

#: Seconds that another rank leaves rank 0, started at the same time, to report an error.
_REPORTING = 30.0

#: Most ranks that are started; with more, the times of one machine mean nothing.
_MOST_RANKS = 64


def serve(request: argparse.Namespace) -> int:
    """Serve a parsed request, and return the exit status."""
    if not under_torchrun():
        use_one_thread()  # its ranks are forked from this process
    try:
        if request.factor < 2:
            raise RequestError(f"--factor must be 2 or more, not {request.factor}")
        plan = plan_of(
            request.names,
            list(sweep(request.min_bytes, request.max_bytes, request.factor)),
            file=request.file,
            like=request.like,
            dtype=request.dtype,
            warmup=request.warmup,
            iterations=request.iters,
            timeout=request.timeout,
            backend=request.backend,
        )
        return bench(plan, Sinks(request.json, request.csv, request.plot), request.ranks)
    except RequestError:
        if under_torchrun() and os.environ["RANK"] != "0":
            # every rank finds the same error, and rank 0 reports it; if this rank ended first,
            # torchrun would end rank 0 before it has; torchrun ends this rank afterwards
            time.sleep(_REPORTING)
            return 2
        raise


@dataclass
class Sinks:
    """The places that results are written to.

    Attributes:
        json: whether to print one JSON object instead of the table.
        csv, plot: files to write.
        rows: the results so far.
    """

    json: bool = False
    csv: Path | None = None
    plot: Path | None = None
    rows: list[SizeRow] = field(default_factory=list)

    def check(self) -> None:
        """Check the files before anything is measured.

        Raises:
            RequestError: a file cannot be written.
        """
        for path in (self.csv, self.plot):
            if path is not None and (path.is_dir() or not path.resolve().parent.is_dir()):
                raise RequestError(f"{path} cannot be written: it must be a file in a folder")
        if self.plot is not None and self.plot.suffix.lower() not in SUFFIXES:
            raise RequestError(
                f"{self.plot} is no picture: its name must end in .png, .svg or .pdf"
            )

    def show(self, plan: BenchPlan, ranks: int, row: SizeRow) -> None:
        """Take a row, and print it unless JSON is wanted."""
        before = self.rows[-1].name if self.rows else None
        if not self.json:
            if row.name != before:
                if before is not None:
                    self._print_foot()
                    print()
                print(header(plan, row.name, row.op, ranks))
            print(line(row), flush=True)
        self.rows.append(row)

    def _print_foot(self) -> None:
        if self.rows:
            name = self.rows[-1].name
            print(footer([row for row in self.rows if row.name == name]), flush=True)

    def finish(self, plan: BenchPlan, ranks: int) -> int:
        """Write the rest, and return the exit status: 1 if an element was wrong."""
        if self.json:
            print(to_json(plan, self.rows, ranks))
        else:
            self._print_foot()
        try:
            if self.csv is not None:
                self.csv.write_text(to_csv(self.rows), encoding="utf-8")
            if self.plot is not None:
                save(self.plot, self.rows, ranks)
        except OSError as error:
            path = error.filename or self.csv or self.plot  # none where the disk is full
            raise RequestError(f"{path} cannot be written: {error.strerror}") from None
        return 1 if any(row.wrong for row in self.rows) else 0


def under_torchrun() -> bool:
    """Return whether this process was started as one rank of several."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def bench(plan: BenchPlan, sinks: Sinks, ranks: int | None) -> int:
    """Measure, and return the exit status.

    Args:
        plan: what to measure.
        sinks: where the results go.
        ranks: number of ranks to start, 4 if None; it must be None under ``torchrun``.

    Raises:
        RequestError: the plan cannot be carried out with these ranks.
        RunFailed: a rank failed.
    """
    if under_torchrun():
        if ranks is not None:
            raise RequestError("--ranks is torchrun's to say here: torchrun --nproc-per-node N")
        return _one_of_many(plan, sinks)
    size = 4 if ranks is None else ranks
    if not 1 <= size <= _MOST_RANKS:
        raise RequestError(f"--ranks takes 1 to {_MOST_RANKS}, not {size}")
    if plan.backend != "gloo":
        raise RequestError(
            f"{plan.backend} needs a device for every rank: start it as torchrun"
            f" --nproc-per-node N -m grader bench ... --backend {plan.backend}"
        )
    _require_partners(plan, size)
    sinks.check()
    from grader.course.bench.rank import rows_of_own_ranks

    for row in rows_of_own_ranks(plan, size):
        sinks.show(plan, size, row)
    return sinks.finish(plan, size)


def _require_partners(plan: BenchPlan, size: int) -> None:
    if size == 1 and plan.file is None and any(op == "send_recv" for _, op in plan.functions):
        raise RequestError("send_recv needs two ranks: a rank cannot send to itself")


def _one_of_many(plan: BenchPlan, sinks: Sinks) -> int:
    """Measure as one rank of ``torchrun``'s; rank 0 shows the results."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    _require_partners(plan, size)
    if rank == 0:
        sinks.check()
    from grader.course.bench.rank import take_part

    _require_backend(plan)

    def fail(failure: RankFailure) -> NoReturn:
        where = f", {failure.site}" if failure.site else ""
        print(f"grader: rank {failure.rank}{where}: {failure.text}", file=sys.stderr, flush=True)
        # torchrun ends the other ranks; no traceback of the grader comes before that
        os._exit(1)

    take_part(plan, lambda row: sinks.show(plan, size, row), fail)
    return sinks.finish(plan, size) if rank == 0 else 0


def _require_backend(plan: BenchPlan) -> None:
    import torch
    import torch.distributed as dist

    if plan.backend == "nccl" and not (dist.is_nccl_available() and torch.cuda.is_available()):
        raise RequestError("nccl needs a GPU, and a PyTorch that is built for it; use gloo here")
