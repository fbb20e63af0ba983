"""The options of ``python -m grader bench``, and what they ask for."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from grader.bench.command import Sinks, bench, plan_of, under_torchrun
from grader.bench.plan import DTYPES, bytes_of
from grader.core.errors import RequestError
from grader.course.bandwidth import FACTORS, sweep

__all__ = ["add_options", "serve"]

#: Seconds in which rank 0, started at the same time, must have said what is wrong.
_LAST_WORDS = 30.0


def _bytes(text: str) -> int:
    try:
        return bytes_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a size is a number of bytes such as 512, 64K, 16M or 1G, not {text!r}"
        ) from None


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number from 0 on is needed, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not _natural(text):
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is needed, not {text!r}")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell a parser what can be asked for."""
    add = parser.add_argument
    add("names", metavar="NAME", nargs="+", help=f"{', '.join(FACTORS)}; with --file, an exercise")
    add("--file", metavar="FILE", help="a student's; torch's own if not given")
    add("--like", choices=sorted(FACTORS), help="the functions of FILE are this collective")
    add("--ranks", type=_count, metavar="N", help="to start here (4)")
    add("--backend", choices=["gloo", "nccl"], default="gloo", help="nccl under torchrun only")
    add("--min-bytes", type=_bytes, default="1K", metavar="B", help="the smallest size (1K)")
    add("--max-bytes", type=_bytes, default="16M", metavar="B", help="the largest size (16M)")
    add("--factor", type=_count, default=4, metavar="F", help="from size to size (4)")
    add("--warmup", type=_natural, default=5, metavar="N", help="calls that are not timed (5)")
    add("--iters", type=_count, default=20, metavar="N", help="calls that are (20)")
    add("--dtype", choices=list(DTYPES), default="float32", help="of the elements")
    add("--timeout", type=_count, default=60, metavar="S", help="seconds of one size (60)")
    add("--csv", type=Path, metavar="PATH", help="write a table")
    add("--plot", type=Path, metavar="PATH", help="draw bus bandwidth against size")
    add("--json", action="store_true", help="print one JSON object instead of the table")


def serve(request: argparse.Namespace) -> int:
    """Do what is asked for; the exit status."""
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
            # every rank finds the same, and rank 0 says it, unless torchrun ends it before that
            # for this one's sake; it ends this one when rank 0 has
            time.sleep(_LAST_WORDS)
            return 2
        raise
