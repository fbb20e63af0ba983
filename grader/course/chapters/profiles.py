"""Profiles of known times, for ``hottest_ops``: real ones but for their clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from torch.autograd import profiler, profiler_util

from grader.course.cases import Case, Draw, Kind

__all__ = [
    "by_call",
    "by_total",
    "hottest",
    "hottest_all",
    "profiles",
    "rank_in_profile",
    "self_times",
]

#: A layer norm and its like: an operator, and those that it calls.  The outer ones do next
#: to nothing themselves.
_NESTED = (
    ("aten::layer_norm", (("aten::native_layer_norm", ("aten::empty", "aten::view")),)),
    ("aten::linear", (("aten::addmm", ("aten::expand", "aten::copy_")), "aten::t")),
    ("aten::dropout", ("aten::bernoulli_", "aten::div_", "aten::mul")),
)

_FLAT = ("aten::mm", "aten::add", "aten::relu", "aten::sum", "aten::exp")


def profiles(draw: Draw) -> Iterator[Case]:
    """What was called when, in microseconds: name, begin, end; who is inside is called by it."""
    flat = _in_a_row(_FLAT, _lengths(draw, len(_FLAT)))
    yield draw.case("five operators, the hottest", spans=flat, k=1)
    yield draw.case("five operators, three of them", spans=flat, k=3)
    # sixty cheap calls cost more than one dear one
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


def _lengths(draw: Draw, count: int) -> list[int]:
    """Microseconds, no two alike, in any order."""
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
    """Operators in operators: the innermost take their time, the others a little beside."""
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


def _added(
    spans: Sequence[Sequence[Any]], length: Callable[[Sequence[Any]], int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for span in spans:
        found[span[0]] = found.get(span[0], 0) + length(span)
    return found


def self_times(c: Case) -> dict[str, int]:
    """Microseconds in each operator itself, all calls together."""
    inner = {id(s): sum(o[2] - o[1] for o in _children(c.spans, s)) for s in c.spans}
    return _added(c.spans, lambda s: s[2] - s[1] - inner[id(s)])


def _first(times: Mapping[str, float], k: int) -> list[str]:
    """The names with the largest times; those of equal ones by name."""
    return sorted(times, key=lambda name: (-times[name], name))[:k]


def hottest(c: Case, times: Mapping[str, float] | None = None) -> list[list[str]]:
    """What the rank should hold; or by other times than :func:`self_times`, if they are given."""
    return [_first(self_times(c) if times is None else times, c.k)] * c.n


def hottest_all(c: Case) -> list[str]:
    """All of them, the hottest first."""
    return _first(self_times(c), len(c.spans))


def by_total(c: Case) -> dict[str, int]:
    """With the time of what an operator calls."""
    return _added(c.spans, lambda s: s[2] - s[1])


def by_call(c: Case) -> dict[str, float]:
    """Of one call, on the average."""
    counts = _added(c.spans, lambda s: 1)
    return {name: time / counts[name] for name, time in self_times(c).items()}


def rank_in_profile(hottest_ops: Callable[..., Any], spans: list[list[Any]], k: int) -> Any:
    """Hand the answer a profile in which everything has taken exactly so long."""
    # torch's own classes for what it has measured; only the measuring is left out
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
    # those that take equally long may stand in any order
    groups = groupby(result, key=lambda name: times[name])
    return [name for _, equal in groups for name in sorted(equal)]
