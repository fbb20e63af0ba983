"""What ``time_collective`` is given to time, and how one sees what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist

from grader.core.verdict import Diagnosis, Failure
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.rank.clock import Clock, shown_to
from grader.trace.causality import heard_from
from grader.trace.trace import Operation, Trace

__all__ = [
    "BARRIER",
    "alike",
    "answers",
    "means",
    "median",
    "not_lined_up",
    "over_all_calls",
    "schedules",
    "time_in_rank",
    "timed",
]

#: Names what ``fn`` sends, so that the record shows when it was called.
_TAG = 1414

#: Seconds on the clock that every operation outside of ``fn`` takes.
BARRIER = 1.0

#: Calls to warm up and calls to time.  Numbers of calls that are powers of two make
#: means exact, in float32 too.
_PLANS = ((0, 1), (2, 4), (1, 8), (3, 1), (0, 2))


def schedules(draw: Draw) -> Iterator[Case]:
    """How long each call takes on each rank; each rank is slow in another call."""
    for warmup, iterations in _PLANS:
        whole = Kind(torch.int64, (draw.n, warmup + iterations))
        # between 1 and 199, in 512ths of a second
        seconds = (draw.tensor(whole) + 100) / 512
        seconds[:, :warmup] += 4  # slow, as first calls are
        seconds[:, -1] += 0.5  # so that the last is never the fastest of several
        for rank in draw.ranks:
            # everybody is slow once, each in another call, and the last rank most of all
            seconds[rank, warmup + rank % iterations] += 1 + rank / 8
        yield draw.case(
            f"{warmup} calls to warm up, {iterations} timed",
            warmup=warmup,
            iterations=iterations,
            seconds=PerRank(seconds.tolist()),
        )


def timed(c: Case) -> list[list[float]]:
    """How long each timed call takes, by rank."""
    return [row[c.warmup :] for row in c.seconds]


def means(c: Case) -> list[float]:
    """The mean over the timed calls, by rank."""
    return [sum(row) / c.iterations for row in timed(c)]


def answers(c: Case, values: Sequence[float]) -> list[dict[str, Any]]:
    """What the ranks hold that return these values, by rank."""
    return [{"calls of fn": c.warmup + c.iterations, "result": value} for value in values]


def alike(c: Case, value: float) -> list[dict[str, Any]]:
    """What the ranks hold if all of them return this value."""
    return answers(c, [value] * c.n)


def over_all_calls(c: Case) -> float:
    """The slowest rank's mean, if calls to warm up counted too."""
    return float(max(sum(row) / len(row) for row in c.seconds))


def median(row: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(row)
    return (ordered[(len(row) - 1) // 2] + ordered[len(row) // 2]) / 2


def time_in_rank(
    time_collective: Callable[..., Any], warmup: int, iterations: int, seconds: list[float]
) -> dict[str, Any]:
    """Hand the answer a function that takes exactly so long, on a clock of its own."""
    rank, n = dist.get_rank(), dist.get_world_size()
    calls = 0

    def posted() -> int:
        """How many operations this rank has begun, those of ``fn`` included."""
        number: int = dist.group.WORLD._recorder.posted  # type: ignore[union-attr]
        return number

    clock = Clock(lambda: BARRIER * (posted() - calls * 2 * (n > 1)))

    def fn() -> None:
        nonlocal calls
        if n > 1:
            message, heard = torch.zeros(1), torch.zeros(1)
            request = dist.isend(message, (rank + 1) % n, tag=_TAG)
            dist.recv(heard, (rank - 1) % n, tag=_TAG)
            assert request is not None
            request.wait()
        clock.now += seconds[min(calls, len(seconds) - 1)]
        calls += 1

    with shown_to(time_collective, clock):
        result = time_collective(fn, warmup, iterations)
    return {"calls of fn": calls, "result": result}


def _before_the_first(c: Case, operations: Sequence[Operation]) -> Sequence[Operation]:
    """What a rank did between its last call to warm up and the first that counts."""
    calls = [place for place, op in enumerate(operations) if op.tag == _TAG and op.kind == "send"]
    first = calls[c.warmup]
    # a call is a send and a receive
    return operations[calls[c.warmup - 1] + 2 if c.warmup else 0 : first]


def not_lined_up(c: Case, trace: Trace) -> Failure | None:
    """Whether a rank can start its clock while another is still elsewhere, for all we know.

    A barrier or an all-reduce holds everybody back, and so does any exchange of
    messages after which each rank has heard of each.
    """
    if c.n == 1:
        return None
    parts = tuple(_before_the_first(c, operations) for operations in trace.operations)
    if all(any(op.kind in ("barrier", "all_reduce") for op in part) for part in parts):
        return None
    for rank, heard in enumerate(heard_from(Trace(parts))):
        missing = sorted(set(c.ranks) - heard)
        if missing:
            return Failure(
                Diagnosis.TOO_FEW_MESSAGES,
                f"rank {rank} can start its clock before rank {missing[0]} has come: nothing lines"
                " the ranks up after the calls to warm up and before the first that counts",
                rank,
            )
    return None
