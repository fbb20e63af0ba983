"""What one rank does: call, take the time, look at the data; in any process group.

The group is set up already, by whoever: by :mod:`grader.bench.starting`, in a test, in
a notebook's ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from grader.bench.plan import BenchPlan
from grader.bench.table import SizeRow
from grader.course.bandwidth import SHARED_OUT, algorithm_bandwidth, bus_bandwidth, share

__all__ = [
    "Buffers",
    "Call",
    "REDUCING",
    "ROOTED",
    "calls",
    "measure",
    "seconds_per_call",
    "wrong_elements",
]


# How each collective is called, as torch's own and as an exercise, and what it must leave. ----
#
# The data are small whole numbers, so that every sum is exact in every dtype and
# in every order, and an element is either right or wrong.

#: What adds up; everything else moves data only.
REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter"})

#: What has a root; rank 0 here.
ROOTED = frozenset({"broadcast", "reduce", "scatter", "gather"})

_SUM = dist.ReduceOp.SUM

#: Torch 2.13 renamed these and warns of the old names; 2.12 has no others.
_ALL_GATHER: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_REDUCE_SCATTER: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass
class Buffers:
    """What a rank brings and what it is to hold; ``whole`` has ``n`` parts.

    Attributes:
        rank, n: of the group.
        part: this rank's part, or all where the tensor has no parts.
        whole: all parts, where the tensor has parts.
    """

    op: str
    rank: int
    n: int
    part: torch.Tensor
    whole: torch.Tensor

    @classmethod
    def make(
        cls, op: str, rank: int, n: int, count: int, dtype: torch.dtype, device: torch.device
    ) -> Buffers:
        """Empty ones, for parts of ``count`` elements."""
        parts = n if op in SHARED_OUT else 0
        part = torch.zeros(count, dtype=dtype, device=device)
        whole = torch.zeros(count * parts, dtype=dtype, device=device)
        return cls(op, rank, n, part, whole)

    def fill(self, more: int = 0) -> None:
        """Put in what this rank brings.

        Args:
            more: added to each number.  A result that was made from larger ones and
                is given out again is wrong in every element, moved or summed.
        """
        self.part.copy_(self._numbers(self.rank, len(self.part)).add_(more))
        if len(self.whole):
            self.whole.copy_(self._numbers(self.rank, len(self.whole)).add_(more))

    def expected(self) -> torch.Tensor | None:
        """What this rank must hold after ``fill()`` and a call, in one piece.

        ``None`` if that is left open.
        """
        op, rank, n, count = self.op, self.rank, self.n, len(self.part)
        if op in ("reduce", "gather") and rank != 0:
            return None
        if op in ("all_reduce", "reduce"):
            return self._added(slice(None))
        if op == "reduce_scatter":
            return self._added(slice(rank * count, (rank + 1) * count))
        if op == "broadcast":
            return self._numbers(0, count)
        if op == "send_recv":
            return self._numbers((rank - 1) % n, count)
        if op == "scatter":
            return self._numbers(0, count * n)[rank * count :][:count]
        if op == "all_to_all":
            mine = slice(rank * count, (rank + 1) * count)
            return torch.cat([self._numbers(r, count * n)[mine] for r in range(n)])
        return torch.cat([self._numbers(r, count) for r in range(n)])

    def _numbers(self, rank: int, count: int) -> torch.Tensor:
        # 127 is the largest sum that an int8 holds; bfloat16 is exact up to 256
        base = max(2, min(7, 1 + 127 // self.n))
        numbers = torch.arange(count, device=self.part.device).add_(3 * rank).remainder_(base)
        return numbers.to(self.part.dtype)

    def _added(self, place: slice) -> torch.Tensor:
        count = len(self.whole) or len(self.part)
        total = self._numbers(0, count)[place]
        for rank in range(1, self.n):
            total += self._numbers(rank, count)[place]
        return total


#: Calls a collective once; gives what holds the result.
Call = Callable[[], Any]


def calls(buffers: Buffers, function: Callable[..., Any] | None, name: str = "") -> Call:
    """The call to be timed.

    Args:
        buffers: to call it with.
        function: a student's, called as its exercise says; torch's own if ``None``.
        name: the student's function.
    """
    return _own(buffers) if function is None else _students(buffers, function, name)


def _own(b: Buffers) -> Call:
    # what is made here is made once, and not timed
    spare, root = torch.zeros_like(b.part), b.rank == 0
    everything = torch.zeros_like(b.whole)
    parts = list(b.whole.chunk(b.n)) if len(b.whole) else []
    table: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: (dist.all_reduce(b.part), b.part)[1],
        "all_gather": lambda: (_ALL_GATHER(everything, b.part), everything)[1],
        "reduce_scatter": lambda: (_REDUCE_SCATTER(spare, b.whole), spare)[1],
        "all_to_all": lambda: (dist.all_to_all_single(everything, b.whole), everything)[1],
        "broadcast": lambda: (dist.broadcast(b.part, 0), b.part)[1],
        "reduce": lambda: (dist.reduce(b.part, 0), b.part)[1],
        "scatter": lambda: (dist.scatter(spare, parts if root else None, 0), spare)[1],
        "gather": lambda: (dist.gather(b.part, parts if root else None, 0), parts)[1],
        "send_recv": lambda: _from_the_left(b, spare),
    }
    return table[b.op]


def _from_the_left(b: Buffers, spare: torch.Tensor) -> torch.Tensor:
    requests = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, b.part, (b.rank + 1) % b.n),
            dist.P2POp(dist.irecv, spare, (b.rank - 1) % b.n),
        ]
    )
    for request in requests:
        request.wait()
    return spare


def _students(b: Buffers, function: Callable[..., Any], name: str) -> Call:
    spare, root = torch.zeros_like(b.part), b.rank == 0
    parts = list(b.whole.chunk(b.n)) if len(b.whole) else []
    table: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: (function(b.part, _SUM), b.part)[1],
        "all_gather": lambda: function(b.part),
        "reduce_scatter": lambda: function(parts, _SUM),
        "all_to_all": lambda: function(parts),
        "broadcast": lambda: (function(b.part, 0), b.part)[1],
        "reduce": lambda: (function(b.part, 0, _SUM), b.part)[1],
        "scatter": lambda: (function(spare, parts if root else None, 0), spare)[1],
        "gather": lambda: function(b.part, 0),
        "send_recv": (lambda: function(b.part, 1)) if name == "shift" else lambda: function(b.part),
    }
    return table[b.op]


def wrong_elements(expected: torch.Tensor | None, held: Any) -> int:
    """How many elements differ; all of them, if what is held has another shape or dtype."""
    if expected is None:
        return 0
    pieces: Sequence[Any] = held if isinstance(held, (list, tuple)) else [held]
    if not all(isinstance(piece, torch.Tensor) for piece in pieces):
        return expected.numel()
    whole = torch.cat([piece.flatten() for piece in pieces]) if pieces else torch.empty(0)
    if whole.shape != expected.shape or whole.dtype != expected.dtype:
        return expected.numel()
    return int((whole != expected).sum())


# What one rank does. --------------------------------------------------------------


def measure(
    plan: BenchPlan,
    functions: dict[str, Callable[..., Any]],
    device: torch.device,
    begin: Callable[[str], None] = lambda what: None,
) -> Iterator[SizeRow]:
    """Measure what the plan says; every rank gets the same rows.

    Args:
        plan: what to measure.
        functions: a student's, by name; where there is none, it is torch's own.
        device: where the tensors lie.
        begin: is told what comes next.
    """
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype: torch.dtype = getattr(torch, plan.dtype)
    for name, op in plan.contests:
        done = set()
        for asked in plan.sizes:
            count, nbytes = share(op, asked, dtype.itemsize, n)
            if nbytes in done:
                continue  # the smallest sizes are rounded up to one element a rank
            done.add(nbytes)
            begin(f"{name} of {nbytes} bytes")
            buffers = Buffers.make(op, rank, n, count, dtype, device)
            call = calls(buffers, functions.get(name), name)
            buffers.fill(more=1)
            seconds = seconds_per_call(call, plan.warmup, plan.iterations, device)
            # anew, since in place sums have grown; with other numbers, since a result that is
            # left from the timed calls must not pass for this call's
            buffers.fill()
            held = call()
            wrong = _agreed(wrong_elements(buffers.expected(), held), dist.ReduceOp.SUM, device)
            yield SizeRow(
                name,
                op,
                nbytes,
                count,
                plan.dtype,
                "sum" if op in REDUCING else "none",
                0 if op in ROOTED else -1,
                seconds,
                algorithm_bandwidth(nbytes, seconds),
                bus_bandwidth(op, nbytes, seconds, n),
                int(wrong),
            )


def seconds_per_call(
    call: Callable[[], Any], warmup: int, iterations: int, device: torch.device
) -> float:
    """The slowest rank's mean, the same number on every rank."""
    for _ in range(warmup):
        call()
    _finish(device)
    dist.barrier()
    _finish(device)
    started = time.perf_counter()
    for _ in range(iterations):
        call()
    _finish(device)
    mean = (time.perf_counter() - started) / iterations
    return _agreed(mean, dist.ReduceOp.MAX, device)


def _finish(device: torch.device) -> None:
    """Wait until the device has done what it was told; a CPU has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _agreed(number: float, op: Any, device: torch.device) -> float:
    tensor = torch.tensor(number, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=op)
    return float(tensor)
