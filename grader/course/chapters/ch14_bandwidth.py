"""Chapter 14: the bandwidth of a collective, and how to measure it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

import torch
import torch.distributed as dist

from grader.core.verdict import Diagnosis, Failure
from grader.course import costs
from grader.course.cases import Case, Draw, Kind, Pause, PerRank
from grader.course.exercise import (
    Evidence,
    Exercise,
    Gives,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.course.limits import LONGER, draw_seconds, mistimed, undecided
from grader.rank.instrumentation import Clock, shown_to, tell_seconds
from grader.trace.trace import Operation, Trace, heard_from

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
            f"{warmup} calls to warm up, {iterations} timed",
            warmup=warmup,
            iterations=iterations,
            seconds=PerRank(seconds.tolist()),
            judged=False,
        )
    if draw.n == _JUDGED_ON:
        for warmup, iterations in _JUDGED:
            name = f"{warmup} calls to warm up, {iterations} timed, by the judge's clock"
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
    told = one.diagnosis is Diagnosis.WRONG_VALUE and list(one.actual) == alike(c, 0.0)
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
            **({"a time": True} if c.judged else {"result": value}),
        }
        for value in values
    ]


def alike(c: Case, value: float) -> list[dict[str, Any]]:
    """Return the reports of ranks that all return this value."""
    return answers(c, [value] * c.n)


def over_all_calls(c: Case) -> float:
    """Return the slowest rank's mean if warm-up calls counted too."""
    return float(max(sum(row) / len(row) for row in c.seconds))


def median(row: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(row)
    return (ordered[(len(row) - 1) // 2] + ordered[len(row) // 2]) / 2


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

    with contextlib.nullcontext() if judged else shown_to(time_collective, clock):
        result = time_collective(fn, warmup, iterations)
    told = {"a time": tell_seconds(result)} if judged else {"result": result}
    return {"calls of fn": calls, **told}


def _before_the_first(c: Case, operations: Sequence[Operation]) -> Sequence[Operation]:
    """Return what a rank did between its last warm-up call and its first timed call."""
    calls = [place for place, op in enumerate(operations) if op.tag == _TAG and op.kind == "send"]
    if len(calls) <= c.warmup:  # the rank says that it has called fn, and has not
        return ()
    first = calls[c.warmup]
    # a call is a send and a receive
    return operations[calls[c.warmup - 1] + 2 if c.warmup else 0 : first]


def not_lined_up(c: Case, trace: Trace) -> Failure | None:
    """Return a failure if a rank can start its clock while another has not arrived yet.

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
                Diagnosis.TOO_FEW_MESSAGES,
                f"rank {rank} can start its clock before rank {missing[0]} has come: nothing lines"
                " the ranks up after the calls to warm up and before the first that counts",
                rank,
            )
    return None


# Dividing, and what to multiply with. ---------------------------------------------

#: Relative error for numbers of a formula, which may be evaluated in any order.
_FORMULA = 1e-9

#: Bytes and seconds; none divides the other, and the seconds are exact.
_RUNS = ((1_000_003, 0.25), (48, 1.5), (7, 2.0), (3 << 30, 0.375))


def _bits(c: Case) -> list[float]:
    return [costs.algorithm_bandwidth(8 * c.nbytes, c.seconds)] * c.n


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
    mistakes=(
        Mistake("These are bits a second. Bytes are asked for: do not multiply by 8.", gives=_bits),
        Mistake(
            "These are gigabytes a second. Bytes are asked for: a table may divide by 10⁹ later.",
            gives=lambda c: [c.nbytes / c.seconds / 1e9] * c.n,
        ),
        Mistake(
            "These are binary gigabytes (2³⁰ bytes) a second. Bytes are asked for.",
            gives=lambda c: [c.nbytes / c.seconds / 2**30] * c.n,
        ),
        Mistake(
            "It is the other way round: bytes divided by seconds.",
            gives=lambda c: [c.seconds / c.nbytes] * c.n,
        ),
        Mistake(
            "What is behind the point is dropped, as // and int() do: return nbytes / seconds as it"
            " is.",
            gives=lambda c: [c.nbytes // c.seconds] * c.n,
        ),
        Mistake(
            "The result is rounded to a whole number: return nbytes / seconds as it is.",
            gives=lambda c: [round(c.nbytes / c.seconds)] * c.n,
        ),
        Mistake(
            "That is bytes times seconds. Twice the time for the same bytes is half the speed:"
            " divide.",
            gives=lambda c: [c.nbytes * c.seconds] * c.n,
        ),
        Mistake(
            "nbytes is a number already, and so is seconds: neither is a tensor.",
            when=lambda e: e.says("'int' object ") or e.says("'float' object "),
        ),
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
                f"{op}, {world_size} ranks",
                op=op, nbytes=1_000_008, seconds=0.7, world_size=world_size,
            )  # fmt: skip


def _times(c: Case, factor: float) -> list[float]:
    return [costs.algorithm_bandwidth(c.nbytes, c.seconds) * factor] * c.n


def _right(c: Case) -> float:
    return costs.factor(c.op, c.world_size)


#: The operations that move data once.
_ONE_PHASE = tuple(op for op in costs.FACTORS if op != "all_reduce")


def _for_one(factor: Callable[[Case], float], *ops: str) -> tuple[Gives, ...]:
    """Make ``gives`` of a wrong factor for one operation each: it may be right for the others."""

    def of(op: str) -> Gives:
        return lambda c: _times(c, factor(c)) if c.op == op else None

    return tuple(of(op) for op in ops or costs.FACTORS)


def _cut(op: str) -> Gives:
    """Make a ``gives``: the results if the bandwidth of one operation is cut to a whole number."""
    return lambda c: [int(value) for value in _times(c, _right(c))] if c.op == op else None


def _does_not_know_the_name(e: Evidence) -> bool:
    """Return whether looking up the operation's name failed, or refused it by name."""
    if e.failure is None or e.diagnosis is not Diagnosis.EXCEPTION:
        return False
    return e.failure.message.rpartition("Error:")[2].strip(" '\"").endswith(e.case.op)


bus_bandwidth = Exercise(
    signature="bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float",
    summary="bytes a second of the busiest link, with the factors of nccl-tests",
    world_sizes=(1,),
    inputs=_operations,
    values=Values(lambda c: _times(c, _right(c)), relative=_FORMULA),
    mistakes=(
        Mistake(
            "That is the algorithm bandwidth. How many bytes a link carries depends on the"
            " operation and the number of ranks: there is a factor to multiply with.",
            gives=lambda c: _times(c, 1) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "The factor approaches 2 only on very many ranks. An all-reduce is a reduce-scatter and"
            " an all-gather: two phases of (n − 1)/n each.",
            gives=lambda c: _times(c, 2) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "An all-reduce has two phases, and both move (n − 1)/n of the tensor over every link:"
            " a reduce-scatter and an all-gather.",
            gives=lambda c: _times(c, _right(c) / 2) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "2(n − 1)/n belongs to the all-reduce alone, which has two phases. This operation has"
            " only one.",
            gives=_for_one(
                lambda c: 2 * (c.world_size - 1) / c.world_size, "broadcast", "reduce", "send_recv"
            ),
        ),
        Mistake(
            "The factor 2 belongs to the all-reduce alone, which has two phases. This operation"
            " has only one.",
            gives=_for_one(lambda c: 2 * _right(c), *_ONE_PHASE),
        ),
        Mistake(
            "That counts one rank's part. nbytes is the whole tensor already, all n parts of it:"
            " do not divide by n once more, or the bandwidth is n times too small.",
            gives=_for_one(lambda c: _right(c) / c.world_size, *costs.SHARED_OUT),
        ),
        Mistake(
            "nbytes is the whole tensor already, all n parts of it: do not multiply by n, or the"
            " bandwidth is n times too large.",
            gives=_for_one(lambda c: _right(c) * c.world_size),
        ),
        Mistake(
            "Here the whole tensor passes over one link, the sender's or the root's: the factor is"
            " 1 and not (n − 1)/n.",
            gives=_for_one(
                lambda c: (c.world_size - 1) / c.world_size, "broadcast", "reduce", "send_recv"
            ),
        ),
        Mistake(
            "One of the n parts stays where it is: it is not sent. The factor is (n − 1)/n and not"
            " 1.",
            gives=_for_one(lambda c: 1, *costs.SHARED_OUT),
        ),
        Mistake(
            "These are bits a second. Bytes are asked for: do not multiply by 8.",
            gives=lambda c: _times(c, 8 * _right(c)),
        ),
        Mistake(
            "These are gigabytes a second. Bytes are asked for: a table may divide by 10⁹ later.",
            gives=lambda c: _times(c, _right(c) / 1e9),
        ),
        Mistake(
            "The factor of an all-reduce has lost its fraction, as happens with //: 2(n − 1)/n is"
            " 1.5 for 4 ranks. Divide with /.",
            gives=_for_one(lambda c: 2 * (c.world_size - 1) // c.world_size, "all_reduce"),
        ),
        Mistake(
            "(n − 1) // n is 0 for every n: // drops the fraction. Divide with /.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and e.actual[0] == 0
                and e.written(r"- 1\) // \w+")
            ),
        ),
        Mistake(
            "The result is cut to a whole number: return it as it is, without int() or //.",
            gives=tuple(_cut(op) for op in costs.FACTORS),
        ),
        Mistake(
            "All nine names must be known: all_reduce, all_gather, reduce_scatter, all_to_all,"
            " broadcast, reduce, scatter, gather, send_recv.",
            when=_does_not_know_the_name,
        ),
        Mistake(
            "A world may have one rank, and then n − 1 is 0: divide by n alone.",
            when=lambda e: e.case.world_size == 1 and e.says("ZeroDivisionError"),
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
    ),
)

# Taking the time. -----------------------------------------------------------------


def _result(e: Evidence) -> list[Any]:
    return [answer.get("result", math.nan) for answer in e.actual]


def _counted(e: Evidence) -> set[int]:
    return {answer["calls of fn"] for answer in e.actual}


def _with_operations(c: Case, count: int) -> list[dict[str, Any]]:
    """Return the right report with this number of operations during the timing."""
    return alike(c, max(means(c)) + count * BARRIER / c.iterations)


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
            gives=lambda c: alike(c, max(sum(row) for row in c.seconds) / c.iterations),
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be discarded: connections,"
            " caches and memory are set up in them.",
            # a mean of six calls, for example, is not exact in float32
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and e.case.warmup > 0
                and all(isclose(v, over_all_calls(e.case), rel_tol=1e-6) for v in _result(e))
            ),
        ),
        Mistake(
            "Every rank returns its own time. Agree on one number, the slowest rank's: the"
            " operation is over when the last rank is done.",
            gives=lambda c: answers(c, means(c)),
        ),
        Mistake(
            "That is the average over ranks. The operation is over when the last rank is done, so"
            " the slowest one's time counts: MAX.",
            gives=lambda c: alike(c, sum(means(c)) / c.n),
        ),
        Mistake(
            "That is the sum over ranks: all_reduce adds unless you say op=dist.ReduceOp.MAX.",
            gives=lambda c: alike(c, sum(means(c))),
        ),
        Mistake(
            "That is the fastest rank's time. The operation is over when the last rank is done:"
            " MAX.",
            gives=lambda c: alike(c, min(means(c))),
        ),
        Mistake(
            "That is the time of all calls together: divide by their number.",
            gives=lambda c: alike(c, max(means(c)) * c.iterations),
        ),
        Mistake(
            "That takes the slowest rank of each call, and then the mean. Take each rank's mean"
            " first, and then the slowest of these.",
            gives=lambda c: alike(
                c, sum(max(call) for call in zip(*timed(c), strict=True)) / c.iterations
            ),
        ),
        Mistake(
            "That is the median of the calls; the mean is asked for.",
            gives=lambda c: alike(c, max(median(row) for row in timed(c))),
        ),
        Mistake(
            "That is the last call alone; the mean of all is asked for.",
            gives=lambda c: alike(c, max(row[-1] for row in timed(c))),
        ),
        Mistake(
            "That is the fastest of the calls; the mean is asked for.",
            gives=lambda c: alike(c, max(min(row) for row in timed(c))),
        ),
        Mistake(
            "A clock of the processor stands still while a rank waits for a message, and waiting"
            " is what takes long here: read time.perf_counter().",
            when=lambda e: (
                bool(e.actual)
                and all(value == 0.0 for value in _result(e))
                and e.written(r"\b(process_time|thread_time|PROCESS_CPUTIME|THREAD_CPUTIME)")
            ),
        ),
        Mistake(
            "No time has passed between your two readings of the clock: take one right before the"
            " first call that counts, and the other right after the last.",
            when=lambda e: (
                bool(e.actual)
                and all(value == 0.0 for value in _result(e))
                and e.written("perf_counter|monotonic")
            ),
        ),
        Mistake(
            "A reading of the clock has more digits than float32 can hold, which torch.tensor makes"
            " of it: subtract first, and make a tensor of the difference.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and e.written(r"tensor\(\[?(time\.)?(perf_counter|monotonic|time)\(\)\]?\)")
            ),
        ),
        Mistake(
            "These are milliseconds; seconds are asked for.",
            gives=lambda c: alike(c, max(means(c)) * 1e3),
        ),
        Mistake(
            "One operation of yours is in the time, beside fn. Read the clock right before the"
            " first call that counts, and right after the last, with nothing else in between: the"
            " barrier comes before the first reading.",
            gives=lambda c: _with_operations(c, 1),
        ),
        Mistake(
            "Two operations of yours are in the time, beside fn. Read the clock right before the"
            " first call that counts, and right after the last.",
            gives=lambda c: _with_operations(c, 2),
        ),
        Mistake(
            "An operation of yours is in the time of every call, as a barrier in the loop would be:"
            " line the ranks up once, and then call fn without a break.",
            gives=lambda c: _with_operations(c, c.iterations),
        ),
    ),
)
