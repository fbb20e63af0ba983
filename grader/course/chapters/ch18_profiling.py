"""Chapter 18: where time goes, and a C++ extension."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import profiler, profiler_util

from grader.exercise.cases import Case, Draw, Kind
from grader.exercise.compare import compare
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import (
    A_TIME,
    LONGER,
    bounds,
    draw_seconds,
    mistimed,
    name_timed,
    undecided,
)
from grader.instruments import (
    Clock,
    Device,
    elementwise_by_hand,
    mark_time,
    on_device,
    show_clock,
    simulate_device,
    without_device,
)
from headcount.core.verdict import Diagnosis, Failure
from headcount.launch.world import Pause
from headcount.trace.trace import Trace

# What the compiled ``vector_add`` is called with: tensors that fit, and tensors that do not. ----

_FITTING = (
    Kind(torch.float32, (5,)),
    Kind(torch.float32, (0,)),
    Kind(torch.float32, (1000,), special=True),
    Kind(torch.float32, (3, 4)),
)

#: Name, and shapes and dtypes of the two tensors.
_MISFITS = (
    ("the second one shorter", (torch.float32, (6,)), (torch.float32, (5,))),
    ("the second one longer", (torch.float32, (5,)), (torch.float32, (6,))),
    ("as many elements, another shape", (torch.float32, (2, 6)), (torch.float32, (3, 4))),
    ("one element and many", (torch.float32, (1,)), (torch.float32, (7,))),
    ("dtypes that differ", (torch.float32, (6,)), (torch.float64, (6,))),
    ("dtypes that differ, of one size", (torch.float32, (6,)), (torch.int32, (6,))),
)


def additions(draw: Draw) -> Iterator[Case]:
    """Draw tensors that can be added first, then strided ones, then ones to be refused."""
    for kind in _FITTING:
        yield draw.case(str(kind), a=draw.tensor(kind), b=draw.tensor(kind), view="plain")
    # the first one: what is made like it has its strides, too
    a, b = draw.tensor(Kind(torch.float32, (6, 4))), draw.tensor(Kind(torch.float32, (4, 6)))
    yield draw.case("one of them transposed", a=a, b=b, view="transposed")
    short, long = draw.tensor(Kind(torch.float32, (7,))), draw.tensor(Kind(torch.float32, (14,)))
    yield draw.case("every other element of one", a=short, b=long, view="strided")
    for name, (dtype, shape), (other, second) in _MISFITS:
        a, b = draw.tensor(Kind(dtype, shape)), draw.tensor(Kind(other, second))
        yield draw.case(f"misfits: {name}", a=a, b=b, view="misfit")


def expected(c: Case) -> list[Any]:
    """Return the sum, or a refusal."""
    if c.view == "misfit":
        return [{"raises": True}] * c.n
    a, b = _viewed(c.a, c.b, c.view)
    return [a + b] * c.n


def _viewed(a: torch.Tensor, b: torch.Tensor, view: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the two tensors as views, as the function gets them."""
    if view == "transposed":
        return a.t(), b
    if view == "strided":
        return a, b[::2]
    return a, b


def add_in_rank(vector_add: Callable[..., Any], a: Any, b: Any, view: str) -> Any:
    """Call the compiled function; an exception is an answer where the tensors do not fit.

    Torch may not compute on whole tensors for it, though it may on elements.
    """
    one, two = _viewed(a, b, view)
    if view != "misfit":
        return elementwise_by_hand(vector_add, one, two)
    try:
        vector_add(one, two)
    except Exception:  # its type depends on the C++ code
        return {"raises": True}
    return {"raises": False}


# What ``time_kernel`` is given to time, and how one sees what it did. -------------

#: Seconds in a tick, the unit of all times; exact as a binary fraction and in nanoseconds.
_TICK = 1 / 512

#: Seconds of host time for a launch, less than any kernel takes; and until the host
#: notices that the device is done.
LAUNCH, NOTICE = _TICK, 3 * _TICK

#: Warm-up calls, timed calls, and the device of the tensors; the simplest first.
_PLANS = (
    (0, 1, "cpu"),
    (2, 5, "cpu"),
    (3, 4, "cpu"),
    (1, 3, "nowhere"),
    (0, 1, "cuda"),
    (2, 5, "cuda"),
    (3, 4, "first"),
    (1, 7, "last"),
)

#: Calls to warm up and timed calls of the cases that the judge times.
_JUDGED = ((1, 5), (2, 3))

_WHERE = {
    "cpu": "tensors on the CPU",
    "nowhere": "no argument",
    "cuda": "tensors on a simulated device",
    "first": "a tensor on a simulated device, then one on the CPU",
    "last": "a number and a tensor on the CPU, then one on a simulated device",
}


def kernels(draw: Draw) -> Iterator[Case]:
    """Draw how long calls take; warm-up calls are slow, and one timed call is slower still."""
    for warmup, iterations, where in _PLANS:
        whole = Kind(torch.int64, (warmup + iterations,))
        # between 8 and 1599 ticks, and no two alike
        ticks = (draw.tensor(whole) + 100) * 8 + torch.arange(warmup + iterations)
        ticks[:warmup] += 32768  # warm-up calls are slow, as first calls are
        if iterations > 1:
            ticks[warmup] += 8192  # another process had the machine
        if iterations > 4:
            # the middle call of the unsorted ones is the second fastest: it is no median, with or
            # without warm-up calls, and neither the fastest nor the slowest
            row, middle = ticks[warmup:], iterations // 2
            second = int(row.argsort()[1])
            row[[middle, second]] = row[[second, middle]]
        seconds = ticks * _TICK
        yield draw.case(
            f"{name_timed(warmup, iterations)}, {_WHERE[where]}",
            warmup=warmup,
            iterations=iterations,
            seconds=seconds.tolist(),
            where=where,
        )
    for warmup, iterations in _JUDGED:
        name = f"{name_timed(warmup, iterations)}, by the judge's clock"
        case = draw.case(name, warmup=warmup, iterations=iterations, seconds=[], where="judge")
        yield _lasting(case, draw_seconds(draw, warmup + iterations))


def _lasting(c: Case, seconds: list[float]) -> Case:
    """Return a case in which the judge lets each call wait for so long."""
    pauses = tuple(Pause(seconds=one) for one in seconds)
    return replace(c, pauses=pauses, secrets={"seconds": seconds})


def _bounds(c: Case, trace: Trace) -> tuple[float, float]:
    """Return bounds on the median that an honest answer measures, in seconds.

    Of a rank that says it has made calls which the judge has not seen, nothing is in them.
    """
    found = bounds(trace, 0, c.warmup, c.iterations)
    if len(found) < c.iterations:
        return math.inf, math.inf
    least, most = zip(*found, strict=True)
    return median(least), median(most)


def not_timed(c: Case, trace: Trace) -> Failure | None:
    """Return a failure if an answer to a case of the judge's tells another time than the judge."""
    return mistimed(trace, *_bounds(c, trace)) if c.where == "judge" else None


def _with_more_time(one: JudgedCase) -> Case | None:
    """Return the case with longer calls, if the machine was too busy for these."""
    c = one.case
    if c.where != "judge" or one.diagnosis is not Diagnosis.WRONG_VALUE or not _counts_right(one):
        return None
    late = undecided(one.trace, *_bounds(c, one.trace))
    return _lasting(c, [LONGER * seconds for seconds in c.seconds]) if late else None


def _counts_right(one: JudgedCase) -> bool:
    return compare(answer(one.case, 0.0), one.actual) is None


def timed(c: Case) -> list[float]:
    """Return how long each timed call takes, in seconds."""
    return list(c.seconds[c.warmup :])


def median(row: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    return statistics.median(row)


def mean(row: Sequence[float]) -> float:
    """Return the sum divided by the number of calls."""
    return sum(row) / len(row)


def answer(c: Case, seconds: float) -> list[dict[str, Any]]:
    """Return the report of a rank that returns this time, in milliseconds."""
    calls = c.warmup + c.iterations
    told = {"the result": A_TIME} if c.where == "judge" else {"result": 1e3 * seconds}
    return [{"calls of fn": calls, "with its arguments": calls, **told}] * c.n


def time_in_rank(
    time_kernel: Callable[..., Any], warmup: int, iterations: int, seconds: list[float], where: str
) -> dict[str, Any]:
    """Give the answer a function that takes the given times, on a clock of its own.

    Where the judge knows the times, the function waits for it, and the clock is the machine's.
    """
    clock = Clock(lambda: 0.0)
    device = Device(clock, LAUNCH, NOTICE)
    first, second = torch.ones(3), torch.zeros(3)
    arguments: tuple[Any, ...] = (first, second)
    if where == "nowhere":
        arguments = ()
    elif where == "cuda":
        arguments = (on_device(first), on_device(second))
    elif where == "first":
        arguments = (on_device(first), second)
    elif where == "last":
        arguments = (1.5, first, on_device(second))
    calls = fitting = 0
    group: Any = dist.group.WORLD

    def fn(*given: Any) -> None:
        nonlocal calls, fitting
        same = len(given) == len(arguments)
        fitting += same and all(a is b for a, b in zip(given, arguments, strict=True))
        calls += 1
        if where == "judge":
            group.pause()
            return
        takes = seconds[min(calls, len(seconds)) - 1]
        if where in ("cuda", "first", "last"):
            device.run(takes)
        else:
            clock.now += takes

    scene = (
        simulate_device(time_kernel, device)
        if where in ("cuda", "first", "last")
        else without_device(time_kernel)
    )
    shown = contextlib.nullcontext() if where == "judge" else show_clock(time_kernel, clock)
    with shown, scene:
        result = time_kernel(fn, *arguments, warmup=warmup, iterations=iterations)
    if where == "judge":
        marked = mark_time(result / 1e3 if isinstance(result, float) else result)
        told = {"the result": A_TIME if marked else result}
    else:
        told = {"result": result}
    return {"calls of fn": calls, "with its arguments": fitting, **told}


# Profiles of known times, for ``hottest_ops``: real ones but for their clock. -----

#: Operators such as a layer norm, and those that they call.  The outer ones take next to
#: no time themselves.
_NESTED = (
    ("aten::layer_norm", (("aten::native_layer_norm", ("aten::empty", "aten::view")),)),
    ("aten::linear", (("aten::addmm", ("aten::expand", "aten::copy_")), "aten::t")),
    ("aten::dropout", ("aten::bernoulli_", "aten::div_", "aten::mul")),
)

_FLAT = ("aten::mm", "aten::add", "aten::relu", "aten::sum", "aten::exp")


def profiles(draw: Draw) -> Iterator[Case]:
    """Draw profiles: name, begin and end of each call, in microseconds.

    A call inside another one is made by it.
    """
    flat = _in_a_row(_FLAT, _lengths(draw, len(_FLAT)))
    yield draw.case("five operators, the hottest", spans=flat, k=1)
    yield draw.case("five operators, three of them", spans=flat, k=3)
    # sixty cheap calls cost more than one expensive call
    calls = ("aten::mm", *["aten::add"] * 60, "aten::relu")
    many = _in_a_row(calls, (900, *[25] * 60, 40))
    yield draw.case("many cheap calls and one dear one", spans=many, k=4)
    nested = _nested(draw)
    yield draw.case("operators that call others, the hottest", spans=nested, k=1)
    yield draw.case("operators that call others, four of them", spans=nested, k=4)
    yield draw.case("more than there are", spans=flat, k=99)
    yield draw.case("none", spans=flat, k=0)
    tied = [
        ("aten::exp", 0, 50),
        ("aten::cos", 60, 110),
        ("aten::mm", 120, 720),
        ("aten::add", 730, 740),
    ]
    yield draw.case("two that take equally long", spans=[list(span) for span in tied], k=3)
    yield draw.case("an empty profile", spans=[], k=2)
    quick = _in_a_row(("aten::mm", "aten::detach", "aten::add"), (300, 0, 40))
    yield draw.case("one that takes no time at all", spans=quick, k=3)


def _lengths(draw: Draw, count: int) -> list[int]:
    """Draw microseconds in any order, no two alike."""
    noise = (draw.tensor(Kind(torch.int64, (count,))) + 100).tolist()
    # far enough apart that no sum or share of one is another
    by_chance = sorted(range(count), key=lambda i: (noise[i], i))
    return [37 * 3 ** by_chance.index(i) + noise[i] % 29 for i in range(count)]


def _in_a_row(names: Sequence[str], lengths: Sequence[int]) -> list[list[Any]]:
    spans, now = [], 0
    for name, length in zip(names, lengths, strict=True):
        spans.append([name, now, now + length])
        now += length + 10
    return spans


def _nested(draw: Draw) -> list[list[Any]]:
    """Draw operators that call operators; the innermost take time, the others next to none."""
    spans: list[list[Any]] = []
    lengths = iter(_lengths(draw, 8))

    def place(what: Any, now: int) -> int:
        name, inside = what if isinstance(what, tuple) else (what, ())
        span = [name, now, 0]
        spans.append(span)
        now += 5
        for one in inside:
            now = place(one, now) + 2
        span[2] = now + (len(name) if inside else next(lengths))
        return int(span[2])

    now = 0
    for what in _NESTED:
        now = place(what, now) + 10
    return spans


def _children(spans: Sequence[Sequence[Any]], parent: Sequence[Any]) -> list[Sequence[Any]]:
    inside = [s for s in spans if s is not parent and parent[1] <= s[1] and s[2] <= parent[2]]
    return [
        s for s in inside if not any(o is not s and o[1] <= s[1] and s[2] <= o[2] for o in inside)
    ]


def self_times(c: Case) -> dict[str, int]:
    """Return the microseconds spent in each operator itself, over all calls."""
    times: dict[str, int] = {}
    for span in c.spans:
        name, begin, end = span
        inner = sum(child[2] - child[1] for child in _children(c.spans, span))
        times[name] = times.get(name, 0) + end - begin - inner
    return times


def hottest(c: Case) -> list[list[str]]:
    """Return the names with the largest times of their own; equal times in order of names."""
    times = self_times(c)
    return [sorted(times, key=lambda name: (-times[name], name))[: c.k]] * c.n


def rank_in_profile(hottest_ops: Callable[..., Any], spans: list[list[Any]], k: int) -> Any:
    """Give the answer a profile in which everything takes exactly the given time."""
    # these are torch's own classes; only the measuring is replaced
    list_of: Any = profiler_util.EventList
    event: Any = profiler_util.FunctionEvent
    events = list_of(
        [
            event(id=i, name=name, thread=1, start_us=begin, end_us=end, stack=[])
            for i, (name, begin, end) in enumerate(spans)
        ],
        use_device=None,
    )
    events._build_tree()
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profile.profiler = profiler.profile(use_kineto=True)
    profile.profiler._function_events = events
    profile.profiler._needs_processing = False
    result = hottest_ops(profile, k)
    times = {row.key: row.self_cpu_time_total for row in events.key_averages()}
    names = isinstance(result, list) and all(isinstance(name, str) for name in result)
    if not names or not times.keys() >= set(result):
        return result
    # operators with equal times may come in any order
    groups = groupby(result, key=lambda name: times[name])
    return [name for _, equal in groups for name in sorted(equal)]


# Taking the time of a kernel. -----------------------------------------------------


def _counted(e: Evidence) -> int:
    return int(e.actual[0]["calls of fn"])


def _right_count(c: Case) -> int:
    return int(c.warmup + c.iterations)


time_kernel = Exercise(
    signature="time_kernel(fn, *args, warmup: int, iterations: int) -> float",
    summary="milliseconds of one call: the median, by the clock of the device that works",
    world_sizes=(1,),
    # its GPU is simulate_device, and there must be no other
    on_cpu=True,
    inputs=kernels,
    adapter=time_in_rank,
    values=Values(lambda c: answer(c, median(timed(c))), relative=1e-9),
    traffic=TrafficRules(proof=not_timed),
    patient=_with_more_time,
    mistakes=(
        Mistake(
            "fn is not called the right number of times: call it warmup times without a clock, and"
            " then iterations times with one.",
            when=lambda e: _counted(e) != _right_count(e.case),
        ),
        Mistake(
            "fn has to be called with its arguments just as they are: fn(*args).",
            when=lambda e: e.actual[0]["with its arguments"] != _counted(e),
        ),
        Mistake(
            "An argument need not be a tensor: ask isinstance(arg, torch.Tensor) and arg.is_cuda.",
            when=lambda e: (
                e.diagnosis is Diagnosis.EXCEPTION
                and all(one.case.where == "last" for one in e.failed)
            ),
        ),
        Mistake(
            "These tensors are on the CPU, where there are no events and nothing to synchronise. "
            "Use time.perf_counter() there, and nothing of torch.cuda.",
            when=lambda e: (
                e.raised("RuntimeError")  # as torch.cuda raises it where there is no device
                and e.case.where == "cpu"
                and e.calls("Event", "synchronize")
            ),
        ),
    ),
)

# Reading a profile. ---------------------------------------------------------------


hottest_ops = Exercise(
    signature="hottest_ops(profile, k: int) -> list[str]",
    summary="the names of the k operators with the most time of their own",
    world_sizes=(1,),
    inputs=profiles,
    adapter=rank_in_profile,
    values=Values(hottest),
    mistakes=(
        Mistake(
            "There may be fewer than k operators, or none at all: a slice such as rows[:k] copes "
            "with both.",
            when=lambda e: e.raised("IndexError"),
        ),
    ),
)

# Code of one's own. ---------------------------------------------------------------


def _misfit(e: Evidence, *words: str) -> bool:
    return e.case.view == "misfit" and any(word in e.case.name for word in words)


def _first_rows_alone(one: JudgedCase) -> bool:
    """Return whether as many elements as there are rows are right, and all or most others wrong."""
    (right,), (held,) = expected(one.case), one.actual
    alike = (held == right).flatten().tolist()
    rows = len(right) if right.dim() > 1 else len(alike)
    return all(alike[:rows]) and sum(alike[rows:]) < len(alike[rows:]) / 2


VECTOR_ADD_CPP = Exercise(
    signature="VECTOR_ADD_CPP: str",
    compiled="vector_add(a: Tensor, b: Tensor) -> Tensor",
    summary="C++ source: the sum of two tensors that fit, and a refusal of all others",
    world_sizes=(1,),
    on_cpu=True,
    inputs=additions,
    adapter=add_in_rank,
    values=Values(expected),
    mistakes=(
        Mistake(
            "Equal numbers of elements are not enough: compare the shapes, a.sizes() == b.sizes().",
            when=lambda e: _misfit(e, "another shape"),
        ),
        Mistake(
            "Compare the dtypes too: otherwise the bits of another dtype are read as floats, or "
            "are silently converted.",
            when=lambda e: _misfit(e, "dtypes"),
        ),
        Mistake(
            "The shapes have to be compared: TORCH_CHECK(a.sizes() == b.sizes(), ...) raises if "
            "they differ. Without it the loop runs beyond the memory of one of them, or torch "
            "broadcasts the smaller one.",
            when=lambda e: _misfit(e, "shorter", "longer", "one element"),
        ),
        Mistake(
            "The memory of a transposed tensor, or of one with gaps, is not in the order of its "
            "elements: call a = a.contiguous(), and the same for b, before you take data_ptr or "
            "make the result like a.",
            when=lambda e: e.case.view in ("transposed", "strided"),
        ),
        Mistake(
            "Only the first size(0) elements are right, one for each row: let the loop run over all"
            " of them, a.numel().",
            when=lambda e: all(map(_first_rows_alone, e.failed)),
        ),
    ),
)
