"""What is called in a loop takes time that is linear in the number of calls."""

from __future__ import annotations

import ast
import gc
import types
from collections import Counter
from itertools import chain, pairwise

import pytest
import torch

from headcount.core.codec import pack, unpack
from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Posted,
    Replicas,
    ReplicaStage,
    ReplicaValue,
)
from headcount.core.program import is_stub
from headcount.core.set_orders import rewrite, sets_of_rank
from headcount.launch.event_validation import EventValidator
from headcount.rank.recorder import Recorder
from headcount.rank.replicas import ReplicaWatch
from headcount.rank.requests import Deferred
from headcount.script.explain import explain
from headcount.trace.deadlock import stuck
from headcount.trace.flight_recorder import DumpedCall, Dumps
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.replicas import ReplicaComparison
from headcount.trace.wildcard_schedules import WildcardPolicy
from support.growth import LIMIT, growth


class Follower:
    """Keeps a few operations of a run."""

    keeps = 16

    def posted(self, op):
        pass

    def done(self, op):
        pass

    def called(self, calls):
        pass


def posted(op, kind, peer, tag=0, blocking=False):
    return Posted(
        op, kind, peer, tag, WORLD, 1, 4, "float32", "", blocking, False, "a.py", 1, op, 0, 0, [],
        0, 0, False, [], 0,
    )  # fmt: skip


# Texts of strangers. ----------------------------------------------------------------


@pytest.mark.parametrize("text", ["\n", " ", "#\n", "/*", "raise NotImplementedError "])
def test_a_text_that_may_be_a_stub(text):
    assert growth(lambda n: lambda: is_stub(f"int x;{text * n}x"), 5_000) < LIMIT


# Recorder. --------------------------------------------------------------------------


def rows(n):
    """Return tensors that share their memory."""
    return list(torch.zeros(n, 4).unbind())


def tensors(n):
    """Return tensors with memory of their own."""
    return [torch.zeros(4) for _ in range(n)]


def one(n):
    """Return one tensor, n times."""
    return [torch.zeros(4)] * n


@pytest.mark.parametrize(("kind", "buffers"), [("recv", rows), ("recv", tensors), ("send", one)])
def test_posting_and_completing(kind, buffers):
    def work(n):
        events = []
        recorder = Recorder(0, lambda event, flush: events.append(event))
        given, side = buffers(n), "writes" if kind == "recv" else "reads"

        def do():
            for tensor in given:
                recorder.post(
                    kind, WORLD, peer=1, measure=tensor, here=("a.py", 1, False), **{side: [tensor]}
                )
            for op in range(n):
                recorder.done(op)

        return do

    assert growth(work, 400) < LIMIT


def test_receives_behind_many_that_wait_for_any_rank():
    def work(n):
        recorder = Recorder(0, lambda event, flush: None)
        given = tensors(n)

        def do():
            for tensor in given:
                assert not recorder.must_defer(False, WORLD, 1)
                recorder.post(
                    "recv",
                    WORLD,
                    measure=tensor,
                    writes=[tensor],
                    deferred=Deferred(WORLD, 0, lambda source: (None, source)),
                    here=("a.py", 1, False),
                )
            assert recorder.must_defer(False, WORLD, 0)
            for op in range(n):
                recorder.resolve(op, 1)
            assert not recorder.must_defer(False, WORLD, 0)

        return do

    assert growth(work, 400) < LIMIT


# Matcher. ---------------------------------------------------------------------------


def sends(n, tags=False):
    return [(0, posted(i, "send", 1, i * tags)) for i in range(n)]


def receives(n, tags=False):
    return [(1, posted(i, "recv", 0, i * tags)) for i in range(n)]


#: What two ranks report of ``n`` messages.
ORDERS = {
    "sends first": lambda n: sends(n) + receives(n),
    "receives first": lambda n: receives(n) + sends(n),
    "in turns": lambda n: list(chain.from_iterable(zip(sends(n), receives(n), strict=True))),
    "each with a tag of its own": lambda n: receives(n, True) + sends(n, True),
}


@pytest.mark.parametrize("order", ORDERS)
def test_matching_and_validating(order):
    def work(n):
        matcher = MessageMatcher(2)
        validator = EventValidator(matcher, None, subgroups=True, watched=False)
        events = ORDERS[order](n)
        events += [(rank, Completed(op, 0)) for op in range(n) for rank in range(2)]

        def do():
            for rank, event in events:
                validator.validate(rank, event)
                matcher.take(rank, event)
                matcher.take_resolutions()
                assert not matcher.ready
            assert matcher.unreceived() == []

        return do

    assert growth(work, 400) < LIMIT


@pytest.mark.parametrize("tags", [False, True])
def test_wildcards_that_are_given_their_messages_one_by_one(tags):
    """Their ranks wait meanwhile, and it is looked after each choice whether they are stuck."""

    def work(n):
        matcher, policy = MessageMatcher(2), WildcardPolicy()
        for op in range(n):
            matcher.take(0, posted(op, "send", 1, tag=op * tags))
            matcher.take(1, posted(op, "recv", ANY, tag=op * tags))

        def do():
            for op in range(n):
                for rank in range(2):
                    matcher.take(rank, Blocked(op, "a.py", 1, 0))
                ready = ((one, matcher.candidates(one)) for one in matcher.ready)
                matcher.resolve(*policy.choose(ready))
                assert not stuck(matcher)
            assert not matcher.ready

        return do

    assert growth(work, 400) < LIMIT


def reachable(root):
    """Return how many objects one refers to, directly or through others."""
    seen, coming = {id(root)}, [root]
    while coming:
        for one in gc.get_referents(coming.pop()):
            if id(one) not in seen and not isinstance(one, type | types.ModuleType):
                seen.add(id(one))
                coming.append(one)
    return len(seen)


def test_of_a_script_nothing_is_kept_of_what_is_over():
    """Neither of the tags that it has used, nor of its wildcards."""

    def kept(n):
        matcher = MessageMatcher(2, follower=Follower())
        for op in range(n):
            matcher.take(0, posted(op, "send", 1, tag=op))
            matcher.take(1, posted(op, "recv", ANY if op % 2 else 0, tag=op))
            for receive in list(matcher.ready):
                matcher.resolve(receive, 0)
            matcher.take(0, Completed(op, 0))
            matcher.take(1, Completed(op, 0))
            matcher.take_resolutions()
        return reachable(matcher)

    assert kept(2000) < 1.2 * kept(500)


# Who waits for whom. ------------------------------------------------------------------


def waiting_chain(n, live, upward):
    """Return ranks of which each waits for the next one, and the last runs or has returned."""
    matcher = MessageMatcher(n)
    order = list(range(n)) if upward else list(reversed(range(n)))
    for rank, peer in pairwise(order):
        matcher.take(rank, posted(0, "recv", peer, blocking=True))
    if not live:
        matcher.end(order[-1])
    return matcher


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("live", [True, False])
def test_a_chain_of_ranks_that_wait(live, upward):
    def work(n):
        matcher = waiting_chain(n, live, upward)
        return lambda: stuck(matcher)

    assert len(stuck(waiting_chain(50, live, upward))) == (0 if live else 49)
    assert growth(work, 400) < LIMIT


# Codec. -----------------------------------------------------------------------------


def table(n):
    return {i: (i, str(i)) for i in range(n)}


@pytest.mark.parametrize("value", [table, tensors, rows])
def test_values_on_the_wire(value):
    def work(n):
        given = value(n)
        return lambda: unpack(pack(given))

    assert growth(work, 400) < LIMIT


# Dumps. -----------------------------------------------------------------------------


def pairs(n):
    """Return the dumps of 2n ranks in n groups of two, of which the second waits in the last."""
    calls = {
        rank: [
            DumpedCall(
                rank, f"g{rank // 2}", "all_reduce", number, "", (4,), number < 9, False, None
            )
            for number in range(1, 10 - rank % 2)
        ]
        for rank in range(2 * n)
    }
    groups = {f"g{pair}": (2 * pair, 2 * pair + 1) for pair in range(n)}
    return Dumps(calls, groups, frozenset(groups))


def steps(n):
    """Return the dumps of eight ranks that have made n calls, and wait in another one for one."""
    calls = {
        rank: [
            DumpedCall(rank, "default_pg", "all_reduce", number, "", (4,), number < n, False, None)
            for number in range(1, n + (rank > 0))
        ]
        for rank in range(8)
    }
    return Dumps(calls, {"default_pg": range(8)}, frozenset({"default_pg"}))


@pytest.mark.parametrize("kind", ["int", "str"])
def test_popping_all_values_of_a_set_in_the_order_of_a_rank(kind):
    source = f"def drain(n):\n    s = set(map({kind}, range(n)))\n    while s: s.pop()"
    space = {}
    exec(compile(rewrite(ast.parse(source)), "answer.py", "exec"), space)

    def work(n):
        return lambda: space["drain"](n)

    sets_of_rank(1, lambda file, line: None)
    try:
        # a set's table is four times as large at the larger size; between others it may be eight
        assert growth(work, 2000) < LIMIT
    finally:
        sets_of_rank(None)


@pytest.mark.parametrize("dumps", [pairs, steps])
def test_explaining_dumps(dumps):
    def work(n):
        made = dumps(n)
        assert explain(made).faults
        return lambda: explain(made)

    assert growth(work, 250) < LIMIT


# Replicas. --------------------------------------------------------------------------


def test_comparing_replicas_takes_time_in_proportion_to_tensors_and_steps():
    def report(step, tensors):
        values = [ReplicaValue(0, f"w {at}", "w", 7, 1.0) for at in range(tensors)]
        stage = ReplicaStage.PARAMETER
        return Replicas("SGD", 0, step, stage, [[0, 1]], [1], values, "a.py", 1)

    def compare(steps, tensors):
        reports = [report(step, tensors) for step in range(steps)]
        compared = ReplicaComparison(2)
        return lambda: [compared.take(rank, one) for one in reports for rank in range(2)]

    assert growth(lambda n: compare(1, n), 2_000) < LIMIT
    assert growth(lambda n: compare(n, 4), 400) < LIMIT


def test_reductions_that_no_step_follows_take_time_in_proportion_to_their_number():
    def work(n):
        watch = ReplicaWatch.__new__(ReplicaWatch)
        watch._reduced, watch._full = {}, 64
        watch._since, watch._calls = Counter(), Counter()
        kept = [torch.ones(1) for _ in range(n)]
        return lambda: [watch.reduced("world", (0, 1), [one]) for one in kept]

    assert growth(work, 1_000) < LIMIT
