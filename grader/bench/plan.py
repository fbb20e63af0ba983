"""What is to be measured: names, sizes and counts, as asked for and found possible."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from grader.core.errors import RequestError
from grader.course.bandwidth import FACTORS

__all__ = ["DTYPES", "KIND_OF", "BenchPlan", "bytes_of", "contest_of"]

#: Exercises by the collective that they are; the others bear a collective's name.
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

#: Names of dtypes, and what nccl-tests calls them.
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
    """``64K`` as a number; K, M and G are binary here, as in nccl-tests.

    Raises:
        ValueError: it is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2].upper()]


def contest_of(name: str, file: str | None, like: str | None) -> str:
    """Which collective a name stands for.

    Raises:
        RequestError: it stands for none.
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
    """A request.

    Attributes:
        contests: names to call, and the collective that each one is.
        sizes: bytes of the whole tensor, ascending.
        dtype: of its elements.
        warmup, iterations: calls that are not timed, and calls that are.
        timeout: seconds that one size may take.
        backend: ``gloo`` or ``nccl``.
        file: the submission; torch's own collectives if ``None``.
        program: its definitions, packed.
    """

    contests: tuple[tuple[str, str], ...]
    sizes: tuple[int, ...]
    dtype: str = "float32"
    warmup: int = 5
    iterations: int = 20
    timeout: float = 60.0
    backend: str = "gloo"
    file: str | None = None
    program: bytes = field(default=b"", repr=False)
