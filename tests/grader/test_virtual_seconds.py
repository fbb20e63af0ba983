"""Limits on virtual seconds: cases that are run on simulated ranks, beside real ones."""

from __future__ import annotations

import time
from dataclasses import replace

import torch
import torch.distributed as dist

from grader.exercise.cases import Kind
from grader.exercise.limits import messages, point, virtual_seconds
from grader.exercise.verdict import Bound, Status
from grader.judge.judge import Judge, Settings
from grader.judge.scoring import score
from grader.report.summary import finding, key_traffic
from grader.submission.submission import Submission
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from tests import declarations

KIND = Kind(torch.float32, (4,))

#: Seconds that a message takes: 2, and ¼ for each of 16 bytes.
ALPHA, BETA, MESSAGE = 2.0, 0.25, 6.0

#: Seconds that the function takes which an answer is given.
WORK = 7.5


def cases(draw):
    yield draw.case("real ranks", x=draw.per_rank(KIND), seconds=0.0)
    yield replace(
        draw.case("a slow network", x=draw.per_rank(KIND), seconds=WORK), network=(ALPHA, BETA)
    )


def given(answer, x, seconds):
    def double(tensor):
        time.sleep(seconds)
        return 2 * tensor

    return answer(x, double)


def declare(relation, seconds):
    return declarations.declare(
        signature="trade(x: Tensor, double) -> Tensor",
        summary="the other rank's x, and one's own doubled, added up",
        inputs=cases,
        expected=lambda c: [2 * c.x[rank] + c.x[1 - rank] for rank in c.ranks],
        adapter=given,
        world_sizes=(2,),
        limits=(messages("=", lambda c: 2), point(virtual_seconds(relation, lambda c: seconds))),
        hints=("Send first.",),
    )


def judge(answer, exercise):
    submission = Submission.from_function(answer, exercise.name)
    return Judge(default_launcher(), Settings(1)).judge(exercise, submission)


def trade(x, double):
    peer, got = 1 - dist.get_rank(), torch.empty_like(x)
    requests = [dist.isend(x, peer), dist.irecv(got, peer)]
    own = double(x)
    for request in requests:
        request.wait()
    return own + got


def one_after_the_other(x, double):
    peer, got = 1 - dist.get_rank(), torch.empty_like(x)
    requests = [dist.isend(x, peer), dist.irecv(got, peer)]
    for request in requests:
        request.wait()
    return double(x) + got


def test_time_is_the_networks_and_the_works_and_is_exact():
    verdict = judge(trade, declare("=", WORK))
    assert verdict.passed
    assert [(case.name, case.simulated) for case in verdict.cases] == [
        ("real ranks", False),
        ("a slow network", True),
        ("messages", False),
        ("virtual time", True),
    ]
    assert verdict.cases[-1].bounds == (Bound("virtual time", WORK, "=", WORK),)
    assert key_traffic(verdict) == (
        "On 2 ranks: 2 messages and 7.5 s of virtual time, exactly what is needed"
    )


def test_too_much_time_is_told_with_the_rank_that_waits_longest():
    verdict = judge(one_after_the_other, declare("≤", WORK))
    assert verdict.diagnosis is Diagnosis.TOO_MANY_SECONDS
    assert verdict.message.startswith(
        "2 simulated ranks, a slow network: virtual time: 13.5 s (should be at most 7.5 s);"
        " rank 0 waits longest, 6 s in send, line "
    )
    assert "Right values, but 13.5 s of virtual time instead of at most 7.5 s" in (verdict.message)
    found = finding(verdict)
    assert found.where == "On 2 simulated ranks, a slow network:"
    assert found.what.startswith(
        "13.5 s of virtual time, should be at most 7.5 s; rank 0 waits longest, 6 s in send"
    )
    assert verdict.score == 0.5


def test_less_time_than_the_work_takes_is_told():
    def lazy(x, double):
        got = torch.empty_like(x)
        requests = [dist.isend(x, 1 - dist.get_rank()), dist.irecv(got, 1 - dist.get_rank())]
        for request in requests:
            request.wait()
        return 2 * x + got

    verdict = judge(lazy, declare("=", WORK))
    assert verdict.diagnosis is Diagnosis.TOO_FEW_SECONDS
    assert verdict.cases[-1].bounds == (Bound("virtual time", MESSAGE, "=", WORK),)


def test_it_is_not_judged_where_no_simulated_run_is_right():
    def stuck_on_the_network(x, double):
        before = time.monotonic()
        own = double(x)
        if time.monotonic() - before > 5:
            dist.recv(torch.empty_like(x), 1 - dist.get_rank())
        got = torch.empty_like(x)
        requests = [dist.isend(x, 1 - dist.get_rank()), dist.irecv(got, 1 - dist.get_rank())]
        for request in requests:
            request.wait()
        return own + got

    exercise = declare("=", WORK)
    verdict = judge(stuck_on_the_network, exercise)
    assert verdict.diagnosis is Diagnosis.DEADLOCK
    assert verdict.message.startswith("2 simulated ranks, a slow network: ")
    assert [case.status for case in verdict.cases] == [
        *(Status.PASSED, Status.FAILED, Status.PASSED, Status.FAILED)
    ]
    assert not verdict.cases[-1].judged
    # half of what is judged passes, and an answer that hangs earns a quarter at most
    assert score(exercise, exercise.cases(1, 2), verdict.cases) == 0.25


def test_a_limit_on_virtual_seconds_needs_a_case_with_a_network():
    exercise = replace(declare("=", WORK), inputs=lambda draw: list(cases(draw))[:1])
    verdict = judge(trade, exercise)
    assert [case.name for case in verdict.cases] == ["real ranks", "messages"]
