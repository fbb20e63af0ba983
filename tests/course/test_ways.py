"""What other ways cost: measured, recorded, and shown beside a learner's own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grader.api import catalogue
from grader.course.index import COSTS, comparisons
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status, SubmissionVerdict
from grader.judge.judge import Judge, Settings
from grader.report.html import exercise_html
from grader.report.json import to_json
from grader.report.text import exercise_report
from grader.submission.submission import Submission
from headcount.core.verdict import Traffic
from headcount.launch.launchers import default_launcher
from headcount.report import plain
from headcount.trace.trace import ALPHA, BETA, Step, replay
from tools import ways

BARRIER = comparisons()["barrier"]


@pytest.mark.exhaustive
def test_what_is_recorded_is_what_the_ways_cost():
    assert COSTS.read_text(encoding="utf-8") == ways.text(), "python -m tools.ways"


@pytest.mark.parametrize("name", ways.WAYS)
def test_nothing_costs_less_than_the_lower_bound(name):
    *found, least = comparisons()[name].ways
    for way in found:
        assert way.rounds >= least.rounds
        assert least.max_sent is None or way.max_sent >= least.max_sent


@pytest.mark.parametrize("name", ways.WAYS)
def test_the_case_is_the_same_for_every_seed(name):
    found = comparisons()[name]
    for seed in (1, 2):
        assert found.case in {case.name for case in catalogue()[name].cases(seed, ways.RANKS)}


def test_virtual_time_has_one_port_each_way_and_counts_bytes():
    """Ranks 1 and 2 send to rank 0, which can receive from one at a time; 0 sends meanwhile."""
    one, two, away = (1, 0), (2, 0), (0, 2)
    programs = [
        [Step("post", "recv", one), Step("post", "recv", two), Step("post", "send", away)],
        [Step("post", "send", one), Step("wait", "send", one), Step("post", "recv", away)],
        [Step("post", "send", two)],
    ]
    assert replay(programs, {one: 5.0, two: 2.0, away: 1.0}.__getitem__) == {
        one: 0,
        two: 5.0,
        away: 5.0,  # rank 1 posts it once its own send has arrived
    }


LOOP = """
import torch.distributed as dist
def broadcast(x, src):
    for dst in range(dist.get_world_size()):
        if dst != src and dist.get_rank() == src:
            dist.send(x, dst)
        elif dst != src and dist.get_rank() == dst:
            dist.recv(x, src)
"""


def test_an_answer_that_is_one_of_the_ways_costs_what_is_recorded():
    submission = Submission.from_bytes(LOOP.encode(), "answer.py", catalogue())
    judge = Judge(default_launcher(), Settings(1))
    verdict = judge.judge(catalogue()["broadcast"], submission)
    way = comparisons()["broadcast"].ways[0]
    text = plain(exercise_report(verdict))
    (yours,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["yours"]]
    (loop,) = [line.split() for line in text.splitlines() if line.split()[:2] == ["a", "loop"]]
    assert yours[1:] == loop[2:]
    assert yours[1:4] == [f"{way.messages:,}", f"{way.max_sent:,}", str(way.rounds)]
    assert way.seconds == pytest.approx(7 * (ALPHA + 8000 * BETA))
    # other cases are not compared, and their times not reckoned
    timed = [case.traffic.seconds is not None for case in verdict.cases if case.traffic]
    assert sum(timed) == 1


COLLECTIVES = """
import torch, torch.distributed as dist
def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    share = -(-x.numel() // n)
    flat = torch.cat([x.flatten(), x.new_zeros(share * n - x.numel())])
    mine = x.new_empty(share)
    dist.reduce_scatter_tensor(mine, flat, op=dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op)
    if op == dist.ReduceOp.AVG:
        mine /= n
    dist.all_gather_into_tensor(flat, mine)
    x.copy_(flat[: x.numel()].view(x.shape))
"""


def test_what_collectives_send_is_not_counted_and_so_not_compared():
    submission = Submission.from_bytes(COLLECTIVES.encode(), "answer.py", catalogue())
    verdict = Judge(default_launcher(), Settings(1)).judge(
        catalogue()["all_reduce_sharded"], submission
    )
    assert verdict.passed
    assert "What it costs" not in plain(exercise_report(verdict))


def passed(rounds: int = 3) -> ExerciseVerdict:
    traffic = Traffic(24, 96, 12, rounds, 3e-6)
    case = CaseVerdict(BARRIER.case, BARRIER.world_size, Status.PASSED, traffic=traffic)
    return ExerciseVerdict("barrier", "c", Status.PASSED, 1, 1, cases=(case,), others=BARRIER)


def test_a_pass_is_shown_beside_other_ways():
    lines = plain(exercise_report(passed())).splitlines()
    table = [line.split() for line in lines if "each at least" in line or "yours" in line]
    assert table[0][:6] == ["yours", "24", "12", "3", "3.0", "µs"]
    assert table[1] == ["each", "at", "least", "–", "–", "3", "–"]
    assert max(map(len, lines)) <= 80
    html = exercise_html(passed())
    assert '<th scope="row"' in html
    assert "What it costs on 8 ranks, one barrier, at 1 µs a message and 10 GB/s:" in html
    found = json.loads(to_json(SubmissionVerdict("answer.py", 1, (passed(),))))
    assert found["exercises"][0]["cases"][0]["traffic"]["virtual_seconds"] == 3e-6


def test_nothing_is_compared_without_the_case_or_another_way():
    smaller = replace(passed(), cases=(replace(passed().cases[0], world_size=4),))
    for verdict in (smaller, replace(passed(), others=None)):
        assert "What it costs" not in plain(exercise_report(verdict))
        assert "What it costs" not in exercise_html(verdict)
