"""The record of a run in Chrome's Trace Event Format: what is in it, and that it is valid.

The rules are those of the format's document: the keys of each phase, slices of one thread that lie
within each other or apart, arrows that begin and end inside slices, and pairs that are complete.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict

import pytest
import torch
import torch.distributed as dist

from headcount import run
from headcount.core.events import mark
from headcount.script.chrome_trace import chrome_trace

#: The keys that each phase has besides its process; ``X`` is a slice, ``s`` and ``f`` an arrow's
#: ends, ``b`` and ``e`` those of an asynchronous event, ``i`` an instant and ``M`` a name.
KEYS = {
    "X": {"tid", "ts", "dur", "name", "cat"},
    "s": {"tid", "ts", "id", "name", "cat"},
    "f": {"tid", "ts", "id", "name", "cat", "bp"},
    "b": {"tid", "ts", "id2", "name", "cat"},
    "e": {"tid", "ts", "id2", "name", "cat"},
    "i": {"tid", "ts", "s", "name"},
    "M": {"tid", "name", "args"},
}


def ring():
    rank, size = dist.get_rank(), dist.get_world_size()
    mark("begins")
    for _ in range(3):
        request = dist.isend(torch.ones(4), (rank + 1) % size)
        dist.recv(torch.zeros(4), (rank - 1) % size)
        request.wait()
    flying = dist.all_reduce(torch.ones(1), async_op=True)
    sum(range(1000))
    flying.wait()


def one_sided():
    dist.barrier()
    if dist.get_rank() == 0:
        dist.recv(torch.zeros(1), 1)


def events_of(function, size):
    done = run(function, size, may_fail=True)
    return json.loads(json.dumps(chrome_trace(done.trace, done.failure)))


@pytest.mark.parametrize(("function", "size"), [(ring, 3), (one_sided, 2)])
def test_a_trace_is_valid(function, size):
    events = events_of(function, size)["traceEvents"]
    slices, ends = defaultdict(list), defaultdict(list)
    for event in events:
        phase = event["ph"]
        assert set(event) - {"ph", "pid", "cname"} >= KEYS[phase], event
        assert event["pid"] in range(size)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        if phase == "X":
            slices[event["pid"]].append((event["ts"], event["ts"] + event["dur"]))
        if phase in "sf":
            ends[event["id"]].append(event)
        if phase in "be":
            ends[event["pid"], event["id2"]["local"]].append(event)
    for stretches in slices.values():
        stretches.sort()
        for (_, end), (start, _) in itertools.pairwise(stretches):
            assert end <= start + 1e-6
    for first, last in ends.values():
        assert (first["ph"], last["ph"]) in (("s", "f"), ("b", "e"))
        assert first["ts"] <= last["ts"]
    for event in events:
        if event["ph"] in "sf":
            inside = [a - 1e-3 <= event["ts"] <= b + 1e-3 for a, b in slices[event["pid"]]]
            assert any(inside), event


def test_every_message_and_collective_is_an_arrow():
    trace = events_of(ring, 3)
    count = Counter((event["ph"], event.get("cat")) for event in trace["traceEvents"])
    assert count["s", "message"] == count["f", "message"] == 9
    assert count["s", "collective"] == 2
    assert count["b", "in flight"] == 3
    assert [e["name"] for e in trace["traceEvents"] if e["ph"] == "i"] == ["begins"] * 3
    assert "otherData" not in trace


def test_a_wait_that_never_ends_says_so():
    trace = events_of(one_sided, 2)
    (waits,) = [e for e in trace["traceEvents"] if e.get("args") == {"ended": False}]
    assert waits["pid"] == 0
    assert trace["otherData"]["diagnosis"] == "deadlock"
