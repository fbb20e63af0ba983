"""Chapter 14: the bandwidth of a collective, and how to measure it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist

from grader.course import costs
from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.compare import compare
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import A_TIME, LONGER, draw_seconds, mistimed, name_timed, undecided
from grader.instruments import Clock, mark_time, show_clock
from headcount.core.verdict import Diagnosis, Failure, counted
from headcount.launch.world import Pause
from headcount.trace.trace import Operation, Trace, heard_from

# What ``time_collective`` is given to time, and how one sees what it did. ---------

#: The tag of the messages of ``fn``, by which the record shows when it was called.
_TAG = 1414

#: Seconds that every operation outside of ``fn`` takes on the answer's clock.
BARRIER = 1.0

#: The number of ranks of the cases that the judge times, their calls to warm up and timed calls.
_JUDGED_ON, _JUDGED = 2, ((1, 4), (2, 3))

#: Calls to warm up and calls to time.  Numbers of calls that are powers of two make
#: means exact, in float32 too.
_PLANS = ((0, 1), (2, 4), (1, 8), (3, 1), (0, 2))


def schedules(draw: Draw) -> Iterator[Case]:
    """Draw how long each call takes on each rank; each rank is slow in another call."""
    for warmup, iterations in _PLANS:
        whole = Kind(torch.int64, (draw.n, warmup + iterations))
        # between 1 and 199, in 512ths of a second
        seconds = (draw.tensor(whole) + 100) / 512
        seconds[:, :warmup] += 4  # warm-up calls are slow, as first calls are
        seconds[:, -1] += 0.5  # so that the last is never the fastest of several
        for rank in draw.ranks:
            # every rank is slow once, each in another call, and the last rank most of all
            seconds[rank, warmup + rank % iterations] += 1 + rank / 8
        yield draw.case(
            name_timed(warmup, iterations),
            warmup=warmup,
            iterations=iterations,
            seconds=PerRank(seconds.tolist()),
            judged=False,
        )
    if draw.n == _JUDGED_ON:
        for warmup, iterations in _JUDGED:
            name = f"{name_timed(warmup, iterations)}, in real time"
            case = draw.case(name, warmup=warmup, iterations=iterations, seconds=[], judged=True)
            yield _lasting(case, draw_seconds(draw, warmup + iterations))


def _lasting(c: Case, seconds: list[float]) -> Case:
    """Return a case in which the judge lets each call wait for so long, on all ranks at a time."""
    pauses = tuple(Pause(seconds=one) for one in seconds)
    return replace(c, pauses=pauses, secrets={"seconds": [seconds] * c.n})


def _bounds(c: Case, trace: Trace) -> tuple[float, float]:
    """Return bounds on the slowest rank's mean that an honest answer measures, in seconds.

    It takes at least as long as the timed calls of any rank, and no rank can start its clock
    before all have done their calls to warm up.
    """
    if any(len(spans) < c.warmup + c.iterations for spans in trace.pauses):
        return math.inf, math.inf
    timed = [spans[c.warmup : c.warmup + c.iterations] for spans in trace.pauses]
    least = max(sum(span.ended - span.began for span in spans) for spans in timed)
    warm = max(spans[c.warmup - 1].ended for spans in trace.pauses)
    return least / 1e9 / c.iterations, ((trace.closed or 0) - warm) / 1e9 / c.iterations


def not_timed(c: Case, trace: Trace) -> Failure | None:
    """Return a failure if the ranks were not lined up, or tell another time than the judge."""
    failure = not_lined_up(c, trace)
    if failure is None and c.judged:
        failure = mistimed(trace, *_bounds(c, trace))
    return failure


def _with_more_time(one: JudgedCase) -> Case | None:
    """Return the case with longer calls, if the machine was too busy for these."""
    c = one.case
    told = one.diagnosis is Diagnosis.WRONG_VALUE and compare(alike(c, 0.0), one.actual) is None
    if not c.judged or not told or not undecided(one.trace, *_bounds(c, one.trace)):
        return None
    return _lasting(c, [LONGER * seconds for seconds in c.seconds[0]])


def timed(c: Case) -> list[list[float]]:
    """Return how long each timed call takes, by rank."""
    return [row[c.warmup :] for row in c.seconds]


def means(c: Case) -> list[float]:
    """Return the mean over the timed calls, by rank."""
    return [sum(row) / c.iterations for row in timed(c)]


def answers(c: Case, values: Sequence[float]) -> list[dict[str, Any]]:
    """Return the reports of ranks that return these values, by rank."""
    return [
        {
            "calls of fn": c.warmup + c.iterations,
            **({"the result": A_TIME} if c.judged else {"result": value}),
        }
        for value in values
    ]


def alike(c: Case, value: float) -> list[dict[str, Any]]:
    """Return the reports of ranks that all return this value."""
    return answers(c, [value] * c.n)


def over_all_calls(c: Case) -> float:
    """Return the slowest rank's mean if warm-up calls counted too."""
    return float(max(sum(row) / len(row) for row in c.seconds))


def time_in_rank(
    time_collective: Callable[..., Any],
    warmup: int,
    iterations: int,
    seconds: list[float],
    judged: bool,
) -> dict[str, Any]:
    """Give the answer a function that takes the given times, on a clock of its own.

    Where the judge knows the times, the function waits for it, and the clock is the machine's.
    """
    rank, n = dist.get_rank(), dist.get_world_size()
    group: Any = dist.group.WORLD
    calls = 0

    def posted() -> int:
        """Return how many operations this rank has begun, those of ``fn`` included."""
        return int(group.posted)

    clock = Clock(lambda: BARRIER * (posted() - calls * 2 * (n > 1)))

    def fn() -> None:
        nonlocal calls
        if n > 1:
            message, heard = torch.zeros(1), torch.zeros(1)
            request = dist.isend(message, (rank + 1) % n, tag=_TAG)
            dist.recv(heard, (rank - 1) % n, tag=_TAG)
            assert request is not None
            request.wait()
        calls += 1
        if judged:
            group.pause()
        else:
            clock.now += seconds[min(calls, len(seconds)) - 1]

    with contextlib.nullcontext() if judged else show_clock(time_collective, clock):
        result = time_collective(fn, warmup, iterations)
    if judged:
        return {"calls of fn": calls, "the result": A_TIME if mark_time(result) else result}
    return {"calls of fn": calls, "result": result}


def _before_the_first(c: Case, operations: Sequence[Operation]) -> Sequence[Operation]:
    """Return what a rank did between its last warm-up call and its first timed call."""
    calls = [place for place, op in enumerate(operations) if op.tag == _TAG and op.kind == "send"]
    if len(calls) <= c.warmup:  # the rank says that it has called fn, and has not
        return ()
    first = calls[c.warmup]
    # a call is a send and a receive
    return operations[calls[c.warmup - 1] + 2 if c.warmup else 0 : first]


def not_lined_up(c: Case, trace: Trace) -> Failure | None:
    """Return a failure if a rank can begin to be timed while another has not arrived yet.

    A barrier or an all-reduce lines all ranks up, and so does any exchange of messages
    after which each rank has heard from every other.
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
                Diagnosis.NOT_SYNCHRONIZED,
                f"rank {rank} can begin the first call that counts before rank {missing[0]} has"
                " come: nothing lines the ranks up between the calls to warm up and that call",
                rank,
            )
    return None


# Dividing, and what to multiply with. ---------------------------------------------

#: Relative error for numbers of a formula, which may be evaluated in any order.
_FORMULA = 1e-9

#: Bytes and seconds; none divides the other, and the seconds are exact, but for the last, where
#: few digits are left if they are rounded.
_RUNS = ((1_000_003, 0.25), (48, 1.5), (7, 2.0), (3 << 30, 0.375), (24, 0.7))


algorithm_bandwidth = Exercise(
    signature="algorithm_bandwidth(nbytes: int, seconds: float) -> float",
    summary="bytes a second",
    world_sizes=(1,),
    inputs=lambda draw: (
        draw.case(f"{nbytes} bytes in {seconds:g} s", nbytes=nbytes, seconds=seconds)
        for nbytes, seconds in _RUNS
    ),
    values=Values(
        lambda c: [costs.algorithm_bandwidth(c.nbytes, c.seconds)] * c.n, relative=_FORMULA
    ),
)

#: World sizes at which no two of the formulas that people use agree.
_RANKS = (4, 8, 1, 3)


def _operations(draw: Draw) -> Iterator[Case]:
    for world_size in _RANKS:
        for op in costs.FACTORS:
            if world_size == 1 and op == "send_recv":
                continue  # a single rank has no rank to send to
            yield draw.case(
                f"{op}, {counted(world_size, 'rank')}",
                op=op, nbytes=24 if world_size == 3 else 1_000_008, seconds=0.7,
                world_size=world_size,
            )  # fmt: skip


def _unknown(e: Evidence) -> bool:
    """Return whether the answer raises what people raise for something that they do not know."""
    return e.raised("KeyError", "ValueError", "NotImplementedError")


def _same(e: Evidence, column: str, one: JudgedCase) -> bool:
    return bool(one.case.columns[column] == e.case.columns[column])


def _off_by(e: Evidence, factor: Callable[[Case], float]) -> bool:
    """Return whether every wrong result is the right one times a number."""
    return all(
        math.isclose(one.actual[0], factor(one.case) * costs.bus_bandwidth(*one.case.arguments(0)))
        for one in e.failed
    )


bus_bandwidth = Exercise(
    signature="bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float",
    summary="bytes a second of the busiest link, with the factors of nccl-tests",
    world_sizes=(1,),
    inputs=_operations,
    values=Values(lambda c: [costs.bus_bandwidth(*c.arguments(0))], relative=_FORMULA),
    mistakes=(
        Mistake(
            "All nine names must be known: all_reduce, all_gather, reduce_scatter, all_to_all,"
            " broadcast, reduce, scatter, gather, send_recv.",
            when=lambda e: _unknown(e) and not any(_same(e, "op", one) for one in e.passed),
        ),
        Mistake(
            "It works for some numbers of ranks, and for others with no operation at all:"
            " world_size may be any whole number from 1 on. Is it looked up somewhere?",
            when=lambda e: _unknown(e) and not any(_same(e, "world_size", one) for one in e.passed),
        ),
        Mistake(
            "A world may have one rank, and then n − 1 is 0: divide by n alone.",
            when=lambda e: e.case.world_size == 1 and e.raised("ZeroDivisionError"),
        ),
        Mistake(
            "Return the number itself, not a string: tables and plots are made of numbers.",
            when=lambda e: e.diagnosis is Diagnosis.WRONG_TYPE and isinstance(e.actual[0], str),
        ),
        Mistake(
            "For the operation in the message the function ends without a return, and so gives"
            " None: all nine names need a factor.",
            when=lambda e: e.diagnosis is Diagnosis.WRONG_TYPE and e.actual[0] is None,
        ),
        Mistake(
            "Wherever it is wrong it is n times too large: nbytes is the whole tensor already, all"
            " n parts of it.",
            when=lambda e: _off_by(e, lambda c: c.world_size),
        ),
        Mistake(
            "Wherever it is wrong it is n times too small: nbytes is the whole tensor, and not n"
            " times as much.",
            when=lambda e: _off_by(e, lambda c: 1 / c.world_size),
        ),
        Mistake(
            "Wherever it is wrong it is twice too large. The 2 of an all-reduce counts its two"
            " phases, and the operation in the message has one.",
            when=lambda e: (
                _off_by(e, lambda c: 2) and all(one.case.op != "all_reduce" for one in e.failed)
            ),
        ),
    ),
)

# Taking the time. -----------------------------------------------------------------


def _result(e: Evidence) -> list[Any]:
    return [answer.get("result", math.nan) for answer in e.actual]


def _counted(e: Evidence) -> set[int]:
    return {answer["calls of fn"] for answer in e.actual}


def _to_an_eighth(e: Evidence) -> bool:
    """Return whether the time of all calls is right to an eighth of a second, and cut to eighths.

    That is what float32 holds of a clock that shows 2²⁰ seconds.
    """
    right, calls = max(means(e.case)), e.case.iterations
    return e.diagnosis is Diagnosis.WRONG_VALUE and all(
        (8 * calls * value).is_integer() and abs(value - right) * calls <= 1 / 8
        for value in _result(e)
    )


time_collective = Exercise(
    signature="time_collective(fn, warmup: int, iterations: int) -> float",
    summary="seconds per call: the slowest rank's mean, the same number everywhere",
    inputs=schedules,
    adapter=time_in_rank,
    values=Values(lambda c: alike(c, max(means(c))), relative=_FORMULA),
    traffic=TrafficRules(proof=not_timed, allowed=frozenset({"barrier", "all_reduce"})),
    patient=_with_more_time,
    mistakes=(
        Mistake(
            "fn is called iterations times only: the calls to warm up are missing, warmup of them,"
            " before the clock is read.",
            when=lambda e: _counted(e) == {e.case.iterations} and e.case.warmup > 0,
        ),
        Mistake(
            "fn is called too often: warmup times without the clock, and then iterations times"
            " with it.",
            when=lambda e: bool(e.actual) and min(_counted(e)) > e.case.warmup + e.case.iterations,
        ),
        Mistake(
            "fn is not called as often as it should be on every rank: warmup times without the"
            " clock, and then iterations times with it.",
            when=lambda e: bool(e.actual) and _counted(e) != {e.case.warmup + e.case.iterations},
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be discarded: connections,"
            " caches and memory are set up in them.",
            # a mean of six calls, for example, is not exact in float32
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and e.case.warmup > 0
                and all(math.isclose(v, over_all_calls(e.case), rel_tol=1e-6) for v in _result(e))
            ),
        ),
        Mistake(
            "No time has passed between your two readings of the clock. Read time.perf_counter(),"
            " right before the first call that counts and again right after the last: a clock of"
            " the processor stands still while a rank waits for a message.",
            when=lambda e: bool(e.actual) and all(value == 0.0 for value in _result(e)),
        ),
        Mistake(
            "A reading of the clock has more digits than float32 can hold, which torch.tensor makes"
            " of it: subtract first, and make a tensor of the difference.",
            when=_to_an_eighth,
        ),
    ),
)
