"""A measurement as data: the plan, the options that ask for it, and what the ranks tell."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grader.course.costs import FACTORS
from headcount.core.errors import RequestError
from headcount.core.options import whole_number
from headcount.core.resource_limits import DEFAULTS

__all__ = [
    "DTYPES",
    "KIND_OF",
    "BenchPlan",
    "RankFailure",
    "SizeRow",
    "add_options",
    "bytes_of",
    "collective_of",
    "plan_of",
]

#: The collective that each exercise implements.
KIND_OF = {
    **{op: op for op in FACTORS if op not in ("all_reduce", "send_recv")},
    "all_reduce_rooted": "all_reduce",
    "all_reduce_sharded": "all_reduce",
    "ring_all_reduce": "all_reduce",
    "ring_all_gather": "all_gather",
    "ring_reduce_scatter": "reduce_scatter",
    "shift": "send_recv",
    "unblock_ring": "send_recv",
}

#: Names of dtypes, and those of nccl-tests.
DTYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "bfloat16",
    "int64": "int64",
    "int32": "int32",
    "int8": "int8",
    "uint8": "uint8",
}

_SIZE = re.compile(r"(\d+)([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str) -> int:
    """Return the bytes of a size such as ``64K``; K, M and G are binary, as in nccl-tests.

    Raises:
        ValueError: the text is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2].upper()]


def collective_of(name: str, file: str | None, like: str | None) -> str:
    """Return the collective that a name stands for.

    Args:
        name: a collective, or a function of ``file``.
        file: the submission; torch's own collectives are measured if it is None.
        like: the collective that the functions of ``file`` implement, if it is given.

    Raises:
        RequestError: the name stands for none.
    """
    if file is None:
        if name in FACTORS:
            return name
        if name in KIND_OF:
            raise RequestError(f"{name} is an exercise: say whose with --file FILE")
    elif like is not None:
        return like
    elif name in KIND_OF:
        return KIND_OF[name]
    known = ", ".join(FACTORS if file is None else KIND_OF)
    also = "" if file is None else ", or say with --like which collective it is"
    raise RequestError(f"{name!r} is nothing to measure; known are {known}{also}")


@dataclass(frozen=True)
class BenchPlan:
    """A measurement that has been asked for.

    Attributes:
        functions: names to call, each with the collective that it implements.
        sizes: bytes of the whole tensor, ascending.
        dtype: name of the elements' dtype.
        warmup, iterations: number of calls that are not timed, and of calls that are.
        timeout: seconds that one size may take.
        backend: ``gloo`` or ``nccl``.
        file: the submission; torch's own collectives are measured if it is None.
        program: the submission's definitions, packed.
    """

    functions: tuple[tuple[str, str], ...]
    sizes: tuple[int, ...]
    dtype: str = "float32"
    warmup: int = 5
    iterations: int = 20
    timeout: float = DEFAULTS.bench
    backend: str = "gloo"
    file: str | None = None
    program: bytes = field(default=b"", repr=False)


def plan_of(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    file: str | None,
    like: str | None,
    **counts: Any,
) -> BenchPlan:
    """Return a plan that can be carried out.

    Args:
        names: collectives, or functions of ``file``.
        sizes: bytes of the whole tensor, ascending.
        file, like: see :func:`collective_of`.
        counts: further attributes of :class:`BenchPlan`.

    Raises:
        RequestError: it cannot be carried out; the message says why.
    """
    if like is not None and file is None:
        raise RequestError("--like says what functions of a file are: give it with --file FILE")
    functions = tuple((name, collective_of(name, file, like)) for name in dict.fromkeys(names))
    if not sizes:
        raise RequestError("--min-bytes is larger than --max-bytes; there is no size to measure")
    program = b"" if file is None else _program(file, [name for name, _ in functions])
    return BenchPlan(functions, tuple(sizes), file=file, program=program, **counts)


def _program(file: str, names: Sequence[str]) -> bytes:
    from grader.submission.submission import Submission

    submission = Submission.from_file(file, names)
    for name in names:
        if name not in submission.names:
            fault = submission.broken.get(name)
            why = f": line {fault.line}: {fault.message}" if fault else ""
            raise RequestError(f"{file} does not define {name}{why}")
    return submission.program.to_bytes()


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


# The options of the command line. --------------------------------------------------


def _bytes(text: str) -> int:
    try:
        return bytes_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a size is a number of bytes such as 512, 64K, 16M or 1G, not {text!r}"
        ) from None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bench`` to a parser."""
    collectives = ", ".join(FACTORS)
    names = f"what to measure: {collectives}; with --file, the name of an exercise"
    parser.add_argument("names", metavar="NAME", nargs="+", help=names)
    meaning = "the collective that the functions of FILE do, where their names do not say it"
    carrier = "what carries the messages (default gloo; nccl under torchrun only)"
    kinds = f"what the elements are: {', '.join(DTYPES)} (default float32)"
    limit = f"seconds that one size may take (default {DEFAULTS.bench:g})"
    untimed = partial(whole_number, least=0)
    for name, metavar, help, more in (
        ("file", "FILE", "measure the functions of this file, not torch's own", {}),
        ("like", "COLLECTIVE", meaning, {"choices": sorted(FACTORS)}),
        ("ranks", "N", "how many ranks to start here (default 4)", {"type": whole_number}),
        ("backend", None, carrier, {"choices": ["gloo", "nccl"], "default": "gloo"}),
        ("min-bytes", "B", "smallest size (default 1K)", {"type": _bytes, "default": "1K"}),
        ("max-bytes", "B", "largest size (default 16M)", {"type": _bytes, "default": "16M"}),
        ("factor", "F", "how many times larger the next size is (default 4)", _number(4)),
        ("warmup", "N", "calls before those that are timed (default 5)", _number(5, untimed)),
        ("iters", "N", "calls that are timed (default 20)", _number(20)),
        ("dtype", "DTYPE", kinds, {"choices": list(DTYPES), "default": "float32"}),
        ("timeout", "S", limit, _number(60)),
        ("csv", "PATH", "write the table to a CSV file", {"type": Path}),
        ("plot", "PATH", "draw the bus bandwidth against the size", {"type": Path}),
    ):
        parser.add_argument(f"--{name}", metavar=metavar, help=help, **more)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the table"
    )


def _number(default: int, kind: Callable[[str], int] = whole_number) -> dict[str, Any]:
    return {"type": kind, "default": default}
