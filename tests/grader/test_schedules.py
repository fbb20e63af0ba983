"""What `check` makes of programs whose outcome depends on the order of arrival."""

from __future__ import annotations

import torch
import torch.distributed as dist

from grader.exercise.cases import Kind
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.verdict import ArrivalOrders, Diagnosis
from headcount.launch.launchers import default_launcher
from support.worlds import line_in
from tests.declarations import declare


def judged(answer, sizes=(4,), **more):
    exercise = declare(
        signature="f(x: Tensor) -> Tensor",
        summary="the sum of all x on rank 0, and x elsewhere",
        inputs=lambda draw: [
            draw.case(f"case {i}", x=draw.per_rank(Kind(torch.int64, (1,)))) for i in range(2)
        ],
        expected=lambda c: [sum(c.x), *c.x[1:]],
        world_sizes=sizes,
        hints=("gather",),
        **more,
    )
    submission = Submission.from_function(answer, "f")
    return Judge(default_launcher(), Settings(1)).judge(exercise, submission)


def test_a_wildcard_that_takes_what_a_later_receive_waits_for():
    """It hangs only if rank 2 comes first: neither the highest nor the lowest rank."""

    def f(x):
        y = torch.empty_like(x)
        if dist.get_rank() != 0:
            dist.send(x, 0)
            return x.clone()
        x = x.clone()
        for source in (None, 2, None):
            dist.recv(y, source)
            x += y
        return x

    verdicts = [judged(f) for _ in range(3)]
    assert len({verdict.message for verdict in verdicts}) == 1
    case = verdicts[0].gravest_failure
    assert case.diagnosis is Diagnosis.DEADLOCK
    line = line_in(f, "dist.recv")
    assert case.message.startswith(f"rank 0 waits to receive from rank 2 at line {line}")
    assert case.message.endswith(
        f". The order of arrival decides: rank 0's 1st receive from any rank (line {line}) can get"
        " the message of rank 1, 2 or 3. With rank 2's it fails, with rank 3's it passes"
        " (2 of 3 known orders tried)"
    )


def test_an_order_that_fails_at_once_is_told_beside_one_that_passes():
    def f(x):
        y = torch.empty_like(x)
        if dist.get_rank() != 0:
            dist.send(x, 0)
            return x.clone()
        x = x.clone()
        for source in (None, 2):
            dist.recv(y, source)
            x += y
        return x

    case = judged(f, sizes=(3,)).gravest_failure
    assert case.diagnosis is Diagnosis.DEADLOCK
    assert (
        "can get the message of rank 1 or 2. With rank 2's it fails, with rank 1's it passes"
        in (case.message)
    )


def test_a_failure_in_every_order_is_no_race():
    def f(x):
        y = torch.empty_like(x)
        if dist.get_rank() != 0:
            dist.send(x, 0)
            return x.clone()
        for _ in range(dist.get_world_size() - 1):
            dist.recv(y)
        return y + 1

    case = judged(f, sizes=(3,)).gravest_failure
    assert case.diagnosis is Diagnosis.WRONG_VALUE
    assert "order of arrival" not in case.message


def sum_as_they_come(x):
    y = torch.empty_like(x)
    if dist.get_rank() != 0:
        dist.send(x, 0)
        return x.clone()
    x = x.clone()
    for _ in range(dist.get_world_size() - 1):
        dist.recv(y)
        x += y
    return x


def test_a_right_answer_says_how_many_orders_were_tried():
    verdict = judged(sum_as_they_come, sizes=(2, 4, 8))
    assert verdict.passed
    first, second, *_ = [case.orders for case in verdict.cases if case.world_size == 4]
    assert first == ArrivalOrders(6, 6, exhausted=True)
    assert [case.orders for case in verdict.cases if case.world_size == 2] == [None, None]
    # more of the first case than of the next
    assert (second.tried, second.exhausted) == (2, False)
    # and a few of the many orders of seven messages
    first, second, *_ = [case.orders for case in verdict.cases if case.world_size == 8]
    assert (first.tried, first.exhausted, second.tried) == (12, False, 2)
