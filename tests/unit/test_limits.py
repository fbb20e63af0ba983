"""Limits on traffic, on records made by hand."""

from __future__ import annotations

from grader.exercise.cases import Case
from grader.exercise.limits import (
    across,
    after,
    before,
    bytes_of_all,
    calls,
    carried,
    messages,
    overlaps,
)
from grader.judge.assessment import assess_limit, measure
from headcount.core.events import Grouped, Marked, Signature
from headcount.core.verdict import Diagnosis
from headcount.launch.world import Outcome
from support.growth import LIMIT, growth
from unit.test_traffic import Script, per_member


def test_the_bytes_of_all_ranks_are_those_of_messages_and_of_collectives():
    """Two calls of an all-to-all, in int64 and in float32, and a message of 5 float32."""
    s = Script(2)
    for rank in range(2):
        s.call(rank, "all_to_all", signatures=[Signature("int64", [3], [3])])
        s.call(rank, "all_to_all", signatures=per_member([2, 7], [[2, 2], [7, 7]][rank]))
    s.call(0, "barrier")
    s.post(0, "send", 1, count=5)
    s.post(1, "recv", 0, count=5)
    bound = bytes_of_all("≤", lambda c: 0).judge(Case("a", 2, {}), s.matcher.trace())
    assert bound.measured == 2 * 3 * 8 + (7 + 2) * 4 + 5 * 4


def test_a_call_in_a_group_is_one_of_its_members_and_a_message_of_two_ranks():
    s = Script(4)
    for rank in (1, 3):
        s.matcher.take(rank, Grouped("odd", [1, 3]))
        s.call(rank, "new_group", group="odd", detail="[1, 3]")
        s.call(rank, "all_reduce", group="odd", signatures=per_member([8]))
    s.post(0, "send", 1, count=5)
    s.post(1, "recv", 0, count=5)
    trace = s.matcher.trace()
    assert [list(trace.ranks_of(op)) for op in trace.operations[1]] == [[1, 3], [1, 3], [1, 0]]
    # a group of two: twice half of the tensor
    assert trace.max_sent_elements == 8
    low = trace.part_where(lambda ranks: max(ranks) < 2)
    assert [[op.kind for op in ops] for ops in low.operations] == [["send"], ["recv"], [], []]
    assert (low.max_sent_elements, low.traffic.messages, low.traffic.rounds) == (5, 1, 1)
    kinds = [op.kind for op in trace.part_where(lambda ranks: True).operations[1]]
    assert kinds == ["all_reduce", "recv"]  # making a group carries nothing


def test_a_limit_counts_only_what_crosses_its_border():
    s = Script(4)
    for rank in range(4):
        s.call(rank, "all_reduce", signatures=per_member([3]))
    s.post(0, "send", 1, count=7)
    s.post(1, "recv", 0, count=7)
    limit = across(
        carried("≤", lambda c: c.length),
        "between nodes",
        lambda c, ranks: len({rank // c.ranks_per_node for rank in ranks}) > 1,
    )
    for ranks_per_node, measured in ((1, 7), (2, 3), (4, 0)):
        case = Case("", 4, {"length": 3, "ranks_per_node": ranks_per_node})
        bound = limit.judge(case, s.matcher.trace())
        assert (bound.measured, bound.holds) == (measured, measured <= 3)
    assert str(bound) == "elements of one rank in a call or message between nodes: 0 (at most 3)"


def test_a_limit_counts_only_what_is_posted_before_or_after_a_mark():
    s = Script(2)
    for rank, first in ((0, 1), (1, 2)):
        for place in range(3):
            if place == first:
                s.matcher.take(rank, Marked("between", s.now()))
            s.call(rank)
    two = calls({"all_reduce"}, "≤", lambda c: 3)
    trace, case = s.matcher.trace(), Case("", 2, {})
    assert before(two, "between", "in forward").judge(case, trace).measured == 3
    bound = after(two, "between", "in backward").judge(case, trace)
    assert str(bound) == "calls of all_reduce in backward: 3 (at most 3)"
    # what never passes the mark is all before it
    assert before(two, "never", "").judge(case, trace).measured == 6


def test_of_a_long_record_a_limit_keeps_the_figures_alone():
    s = Script(2)
    for _ in range(3):
        s.post(0, "send", 1, count=5)
        s.post(1, "recv", 0, count=5)
    case, limit = Case("a", 2, {}), messages("=", lambda c: 2)
    for reported, kept in ((1 << 20, 6), (4 << 20, 0)):
        outcome = Outcome((), None, s.matcher.trace(), (), 0.0, reported=reported)
        verdict, seen = assess_limit(limit, 2, [measure(limit, case, outcome)], ())
        assert (verdict.diagnosis, verdict.traffic.messages) == (Diagnosis.TOO_MANY_MESSAGES, 3)
        assert verdict.message == "a: messages: 3 (should be exactly 2)"
        assert sum(map(len, seen.trace.operations)) == kept


def overlapping(script):
    limit = overlaps("all_reduce", "gradient", "step", lambda c: 0)
    return limit.judge(Case("a", 1, {}), script.matcher.trace()).measured


def test_a_step_overlaps_if_something_is_computed_between_a_call_and_the_wait_for_it():
    s = Script(1)

    def mark(*texts):
        for text in texts:
            s.matcher.take(0, Marked(text, s.now()))

    mark("step", "gradient")
    first = s.post(0, "all_reduce")
    mark("gradient", "gradient")
    s.block(0, first)
    mark("step", "gradient")
    s.call(0, "all_reduce")
    mark("gradient", "step", "gradient")
    s.post(0, "barrier")
    mark("gradient")
    assert overlapping(s) == 1
    s.post(0, "all_reduce")
    mark("gradient")
    assert overlapping(s) == 2


def test_marks_and_calls_are_gone_through_once_however_many_there_are():
    def work(n):
        s = Script(1)
        for _ in range(n):
            s.post(0, "all_reduce")
            s.matcher.take(0, Marked("gradient", 0))
        return lambda: overlapping(s)

    assert growth(work, 1000) < LIMIT
