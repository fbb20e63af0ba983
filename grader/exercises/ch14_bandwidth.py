"""Chapter 14: how fast it was, and how one finds out."""

from collections.abc import Callable, Iterator
from math import isclose
from typing import Any

from grader import bandwidth
from grader.cases import Case, Draw
from grader.exercise import Evidence, Exercise, Gives, Mistake
from grader.exercises.timings import (
    BARRIER,
    alike,
    answers,
    means,
    median,
    not_lined_up,
    over_all_calls,
    schedules,
    time_in_rank,
    timed,
)
from grader.verdict import Diagnosis

# Dividing, and what to multiply with. ---------------------------------------------

#: Formulas may be worked out in any order: many roundings, and no more.
_FORMULA = 1e-9

#: Bytes and seconds; none divides the other, and the seconds are exact.
_RUNS = ((1_000_003, 0.25), (48, 1.5), (7, 2.0), (3 << 30, 0.375))


def _bits(c: Case) -> list[float]:
    return [bandwidth.algorithm_bandwidth(8 * c.nbytes, c.seconds)] * c.n


algorithm_bandwidth = Exercise(
    signature="algorithm_bandwidth(nbytes: int, seconds: float) -> float",
    summary="bytes a second",
    world_sizes=(1,),
    inputs=lambda draw: (
        draw.case(f"{nbytes} bytes in {seconds:g} s", nbytes=nbytes, seconds=seconds)
        for nbytes, seconds in _RUNS
    ),
    expected=lambda c: [bandwidth.algorithm_bandwidth(c.nbytes, c.seconds)] * c.n,
    relative=_FORMULA,
    hints=(
        "How many bytes in one second, if it takes `seconds` for `nbytes`?",
        "return nbytes / seconds",
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
            "// drops what is behind the point: divide with /.",
            gives=lambda c: [c.nbytes // c.seconds] * c.n,
        ),
    ),
    advice={Diagnosis.WRONG_TYPE: "Return a float: in Python, / makes one of two whole numbers."},
)

#: World sizes at which no two of the formulas that people use agree.
_RANKS = (4, 8, 1, 3)


def _operations(draw: Draw) -> Iterator[Case]:
    for world_size in _RANKS:
        for op in bandwidth.FACTORS:
            if world_size == 1 and op == "send_recv":
                continue  # nobody to send to
            yield draw.case(
                f"{op}, {world_size} ranks",
                op=op, nbytes=1_000_008, seconds=0.7, world_size=world_size,
            )  # fmt: skip


def _times(c: Case, factor: float) -> list[float]:
    return [bandwidth.algorithm_bandwidth(c.nbytes, c.seconds) * factor] * c.n


def _right(c: Case) -> float:
    return bandwidth.factor(c.op, c.world_size)


#: The operations that move data once.
_ONE_PHASE = tuple(op for op in bandwidth.FACTORS if op != "all_reduce")


def _for_one(factor: Callable[[Case], float], *ops: str) -> tuple[Gives, ...]:
    """A wrong factor for one of these operations: what is wrong for one may be right for others."""

    def of(op: str) -> Gives:
        return lambda c: _times(c, factor(c)) if c.op == op else None

    return tuple(of(op) for op in ops or bandwidth.FACTORS)


bus_bandwidth = Exercise(
    signature="bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float",
    summary="bytes a second of the busiest link, with the factors of nccl-tests",
    world_sizes=(1,),
    inputs=_operations,
    expected=lambda c: _times(c, _right(c)),
    relative=_FORMULA,
    hints=(
        "How many bytes must the busiest link carry at least, compared with nbytes? The bus"
        " bandwidth is the algorithm bandwidth times that ratio.",
        "A reduce-scatter, an all-gather, an all-to-all, a scatter and a gather move n − 1 of n"
        " parts over the busiest link; an all-reduce is the first two, one after the other; what a"
        " broadcast, a reduce or a plain message moves is the whole tensor.",
        "The factors: all_reduce 2(n − 1)/n; reduce_scatter, all_gather, all_to_all, scatter and"
        " gather (n − 1)/n; broadcast, reduce and send_recv 1. nbytes is always the whole tensor.",
    ),
    mistakes=(
        Mistake(
            "That is the algorithm bandwidth. How many bytes a link carries depends on the"
            " operation and the number of ranks: there is a factor to multiply with.",
            gives=lambda c: _times(c, 1) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "The factor 2 is what (n − 1)/n twice comes to for very many ranks only. An all-reduce"
            " is a reduce-scatter and an all-gather: two phases of (n − 1)/n each.",
            gives=lambda c: _times(c, 2) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "An all-reduce has two phases, and both move (n − 1)/n of the tensor over every link:"
            " a reduce-scatter and an all-gather.",
            gives=lambda c: _times(c, _right(c) / 2) if c.op == "all_reduce" else None,
        ),
        Mistake(
            "2(n − 1)/n belongs to the all-reduce alone, which has two phases. This operation has"
            " one.",
            gives=_for_one(
                lambda c: 2 * (c.world_size - 1) / c.world_size, "broadcast", "reduce", "send_recv"
            ),
        ),
        Mistake(
            "The factor 2 belongs to the all-reduce alone, which has two phases. This operation"
            " has one.",
            gives=_for_one(lambda c: 2 * _right(c), *_ONE_PHASE),
        ),
        Mistake(
            "That counts one rank's part. nbytes is the whole tensor already, all n parts of it:"
            " do not divide by n once more, or the bandwidth is n times too small.",
            gives=_for_one(lambda c: _right(c) / c.world_size, *bandwidth.SHARED_OUT),
        ),
        Mistake(
            "nbytes is the whole tensor already, all n parts of it: do not multiply by n, or the"
            " bandwidth is n times too large.",
            gives=_for_one(lambda c: _right(c) * c.world_size),
        ),
        Mistake(
            "All data have to leave or enter the root by one link here, all of them: the factor is"
            " 1 and not (n − 1)/n.",
            gives=_for_one(
                lambda c: (c.world_size - 1) / c.world_size, "broadcast", "reduce", "send_recv"
            ),
        ),
        Mistake(
            "One of the n parts stays where it is: it is not sent. The factor is (n − 1)/n and not"
            " 1.",
            gives=_for_one(lambda c: 1, *bandwidth.SHARED_OUT),
        ),
        Mistake(
            "These are bits a second. Bytes are asked for: do not multiply by 8.",
            gives=lambda c: _times(c, 8 * _right(c)),
        ),
        Mistake(
            "These are gigabytes a second. Bytes are asked for: a table may divide by 10⁹ later.",
            gives=lambda c: _times(c, _right(c) / 1e9),
        ),
    ),
    advice={
        Diagnosis.EXCEPTION: "All nine names must be known: all_reduce, all_gather,"
        " reduce_scatter, all_to_all, broadcast, reduce, scatter, gather, send_recv.",
        Diagnosis.WRONG_TYPE: "Return a float for each of the nine names, and for a world of one"
        " rank too, where most factors are 0.",
    },
)

# Taking the time. -----------------------------------------------------------------


def _result(e: Evidence) -> list[Any]:
    return [answer["result"] for answer in e.actual]


def _counted(e: Evidence) -> set[int]:
    return {answer["calls of fn"] for answer in e.actual}


def _with_operations(c: Case, count: int) -> list[dict[str, Any]]:
    """The right result, and so many operations timed as well."""
    return alike(c, max(means(c)) + count * BARRIER / c.iterations)


time_collective = Exercise(
    signature="time_collective(fn, warmup: int, iterations: int) -> float",
    summary="seconds per call: the slowest rank's mean, the same number everywhere",
    inputs=schedules,
    adapter=time_in_rank,
    expected=lambda c: alike(c, max(means(c))),
    relative=_FORMULA,
    proof=not_lined_up,
    allowed=frozenset({"barrier", "all_reduce"}),
    hints=(
        "Four steps: call fn to warm up, line the ranks up, measure, agree on one number. Which"
        " two of them need the other ranks?",
        "The barrier comes after the calls to warm up and before the clock is read. One clock"
        " around all calls, divided by their number, is this rank's mean; the slowest rank's is"
        " an all_reduce with MAX.",
        "In code:\n"
        "    for _ in range(warmup):\n"
        "        fn()\n"
        "    dist.barrier()\n"
        "    started = time.perf_counter()\n"
        "    for _ in range(iterations):\n"
        "        fn()\n"
        "    mean = torch.tensor((time.perf_counter() - started) / iterations)\n"
        "    dist.all_reduce(mean, op=dist.ReduceOp.MAX)\n"
        "    return mean.item()",
    ),
    mistakes=(
        Mistake(
            "fn is called too often or too rarely: warmup times without the clock, and then"
            " iterations times with it.",
            when=lambda e: bool(e.actual) and _counted(e) != {e.case.warmup + e.case.iterations},
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be forgotten: connections,"
            " caches and memory are set up in them.",
            gives=lambda c: alike(c, max(sum(row) for row in c.seconds) / c.iterations),
        ),
        Mistake(
            "The calls to warm up are in the time. They are there to be forgotten: connections,"
            " caches and memory are set up in them.",
            # a mean of six calls, say, is not exact in float32
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
            "That takes the slowest rank of each call, and then the mean. Asked for is the mean of"
            " each rank, and then the slowest of these.",
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
            when=lambda e: bool(e.actual) and all(value == 0.0 for value in _result(e)),
        ),
        Mistake(
            "These are milliseconds; seconds are asked for.",
            gives=lambda c: alike(c, max(means(c)) * 1e3),
        ),
        Mistake(
            "One operation of yours is in the time, beside fn. Read the clock right before the"
            " first call that counts, and right after the last, with no barrier or all_reduce in"
            " between.",
            gives=lambda c: _with_operations(c, 1),
        ),
        Mistake(
            "Two operations of yours are in the time, beside fn. Read the clock right before the"
            " first call that counts, and right after the last.",
            gives=lambda c: _with_operations(c, 2),
        ),
        Mistake(
            "There is a barrier in every turn, and it is in the time: line the ranks up once, and"
            " then call fn without a break.",
            gives=lambda c: _with_operations(c, c.iterations),
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "Return a float: .item() makes one of a tensor of one element.",
        Diagnosis.WRONG_VALUE: "Read the clock after the barrier and right after the last call;"
        " divide by iterations; take the largest over ranks. A clock's reading is too long for"
        " float32: subtract first, and make a tensor of the difference.",
        Diagnosis.TOO_FEW_MESSAGES: "Line the ranks up with dist.barrier(), after the calls to warm"
        " up and before the clock is read: otherwise who comes early times its own waiting.",
        Diagnosis.ORDER_MISMATCH: "All ranks have to make the same calls in the same order: the"
        " barrier and the all_reduce stand outside of any `if rank == 0`.",
        Diagnosis.DEADLOCK: "Do all ranks call fn equally often, and does every rank take part in"
        " the barrier and in the all_reduce?",
    },
)
