"""What the plain way takes, as a pass is compared with it: measured, and shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from grader.api import catalogue, run
from grader.core.verdict import Bound, CaseVerdict, ExerciseVerdict, Status
from grader.course.cases import Case, PerRank
from grader.report.html import exercise_html
from grader.report.text import exercise_report, plain


def loop(x):
    if dist.get_rank() == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)


def to_root(x):
    if dist.get_rank() == 0:
        for src in range(1, dist.get_world_size()):
            y = torch.empty_like(x)
            dist.recv(y, src)
            x += y
    else:
        dist.send(x, 0)


def through_root(x):
    to_root(x)
    loop(x)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize(
    "name, way, function",
    [
        ("tree_broadcast", "a loop", loop),
        ("tree_reduce", "a loop", to_root),
        ("barrier", "a central rank", through_root),
        ("ring_all_reduce", "a root", through_root),
    ],
)
def test_the_plain_way_takes_what_is_said(name, way, function, n):
    (limit,) = [one for one in catalogue()[name].limits if one.plain is not None]
    assert limit.plain_way == way
    trace = run(function, n, torch.ones(12)).trace
    columns = {"x": PerRank([torch.ones(12)] * n), "src": 0, "dst": 0, "calls": 1}
    assert limit.judge(Case("a", n, columns), trace).plain == limit.measure(trace)


def passed(*bounds: Bound) -> ExerciseVerdict:
    cases = tuple(CaseVerdict("rounds", 8, Status.PASSED, bounds=(b,)) for b in bounds)
    return ExerciseVerdict("tree_broadcast", "c", Status.PASSED, 1, 1, cases=cases)


def test_a_pass_is_shown_beside_the_plain_way():
    verdict = passed(Bound("rounds", 3, "=", 3, 7, "a loop"))
    assert plain(exercise_report(verdict)).splitlines()[2:] == [
        "  Rounds on 8 ranks:",
        f"      a loop   {'█' * 32} 7",
        f"      yours    {'█' * 14} 3",
    ]
    html = exercise_html(verdict)
    assert "a loop</span>" in html
    assert "width: 21.4%" in html


@pytest.mark.parametrize(
    "bound", [Bound("rounds", 3, "=", 3), Bound("rounds", 1, "=", 1, 1, "a loop")]
)
def test_nothing_is_compared_where_there_is_nothing_to_win(bound):
    assert "█" not in plain(exercise_report(passed(bound)))
    failed = replace(passed(Bound("rounds", 3, "=", 3, 7, "a loop")), status=Status.FAILED)
    assert "█" not in plain(exercise_report(failed))
