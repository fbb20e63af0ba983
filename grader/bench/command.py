"""The command ``bench``: with ranks that it starts, or as one rank of ``torchrun``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from grader.bench.plan import BenchPlan, plan_of
from grader.bench.table import (
    SUFFIXES,
    RankFailure,
    SizeRow,
    footer,
    header,
    line,
    save,
    to_csv,
    to_json,
)
from grader.core.errors import RequestError
from grader.course.costs import sweep
from grader.launch.launchers import use_one_thread

__all__ = ["Sinks", "bench", "serve", "under_torchrun"]

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
                    self._foot()
                    print()
                print(header(plan, row.name, row.op, ranks))
            print(line(row), flush=True)
        self.rows.append(row)

    def _foot(self) -> None:
        if self.rows:
            name = self.rows[-1].name
            print(footer([row for row in self.rows if row.name == name]), flush=True)

    def finish(self, plan: BenchPlan, ranks: int) -> int:
        """Write the rest, and return the exit status: 1 if an element was wrong."""
        if self.json:
            print(to_json(plan, self.rows, ranks))
        else:
            self._foot()
        try:
            if self.csv is not None:
                self.csv.write_text(to_csv(self.rows), encoding="utf-8")
            if self.plot is not None:
                save(self.plot, self.rows, ranks)
        except OSError as error:
            raise RequestError(f"{error.filename} cannot be written: {error.strerror}") from None
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
    from grader.bench.rank import rows_of_own_ranks

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
    from grader.bench.rank import take_part

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
