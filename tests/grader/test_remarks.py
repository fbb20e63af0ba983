"""What breaks no rule and is probably a mistake: it is remarked, once, and the run passes."""

from __future__ import annotations

import warnings
from collections import deque

import pytest
import torch
import torch.distributed as dist

import grader
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.report.text import exercise_report
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from headcount.report import plain
from support.worlds import line_in
from tests.declarations import declare

#: Ranks in processes, and simulated ones.
WAYS = pytest.mark.parametrize("ranks", [grader.run, grader.simulate])


def remarks(capsys, ranks, function, n=2, **how):
    """Return what is printed of a run that passes: its remarks."""
    capsys.readouterr()
    ran = ranks(function, n, **how)
    lines = [line.removeprefix("warning: ") for line in capsys.readouterr().out.splitlines()]
    return list(ran), lines


# Shapes. ----------------------------------------------------------------------------


def shares_of_other_sizes():
    pieces = [piece.clone() for piece in torch.arange(5).tensor_split(dist.get_world_size())]
    mine = torch.empty_like(pieces[dist.get_rank()])
    dist.reduce_scatter(mine, pieces)
    return mine.tolist()


@WAYS
def test_shares_of_other_sizes_are_not_remarked(capsys, ranks):
    held, said = remarks(capsys, ranks, shares_of_other_sizes)
    assert held == [[0, 2, 4], [6, 8]]
    assert said == []


def reduces_two_shapes():
    x = torch.ones(2, 3) if dist.get_rank() == 1 else torch.ones(6)
    for _ in range(2):
        dist.all_reduce(x)
    return x.flatten().tolist()


@WAYS
def test_shapes_that_differ_are_said_once_and_the_values_are_gloos(capsys, ranks):
    held, (said,) = remarks(capsys, ranks, reduces_two_shapes, 3)
    assert held == 3 * [[9.0] * 6]
    at = f"line {line_in(reduces_two_shapes, 'all_reduce')}"
    assert said.startswith(
        f"all_reduce takes tensors of different shapes: ranks 0 and 2 have shape (6,) ({at});"
        f" rank 1 has shape (2, 3) ({at})."
    )
    assert "TORCH_DISTRIBUTED_DEBUG=DETAIL refuses it" in said


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dist.broadcast(x, 0),
        lambda x: dist.reduce(x, 0),
        lambda x: dist.all_gather_into_tensor(torch.empty(2 * x.numel()), x.flatten()),
        lambda x: dist.reduce_scatter(x, [torch.ones_like(x) for _ in range(2)]),
    ],
)
def test_shapes_are_compared_where_all_ranks_tensors_are_alike(capsys, call):
    def answer(shapes):
        call(torch.ones(shapes[dist.get_rank()]))

    _, alike = remarks(capsys, grader.run, lambda: answer([(2, 3), (2, 3)]))
    _, unlike = remarks(capsys, grader.run, lambda: answer([(2, 3), (3, 2)]))
    assert alike == []
    flattened = "flatten" in call.__code__.co_names
    assert len(unlike) == (0 if flattened else 1)


@WAYS
def test_a_message_may_arrive_in_another_shape(capsys, ranks):
    def answer():
        x = torch.zeros(2, 3)
        dist.send(torch.ones(6), 1) if dist.get_rank() == 0 else dist.recv(x, 0)

    assert remarks(capsys, ranks, answer)[1] == []


def test_sizes_that_differ_are_more_than_a_remark():
    def answer():
        dist.all_reduce(torch.ones(2 + dist.get_rank()))

    failure = grader.run(answer, 2, may_fail=True).failure
    assert failure.diagnosis == "size_mismatch"


# Copies that are written in vain. -----------------------------------------------------


def takes(receive):
    """Return a program in which rank 1 receives two numbers, in some way, into parts of x."""

    def answer():
        x, rows = torch.zeros(4), torch.tensor([0, 2])
        if dist.get_rank() == 0:
            dist.send(torch.ones(2), 1)
        else:
            receive(x, rows)
        return x.tolist()

    return answer


def by_index(x, rows):
    dist.recv(x[rows], 0)


def by_mask(x, rows):
    dist.irecv(x[x == 0][:2].clone(), src=0).wait()


def by_conversion(x, rows):
    dist.recv(tensor=x[:2].double().float(), src=0)


@WAYS
@pytest.mark.parametrize(
    "receive, copy, mend",
    [
        (by_index, "recv writes to the copy that the index of x makes", ", as in x[index] ="),
        (by_mask, "irecv writes to the new tensor that .clone() makes", "belongs"),
        (by_conversion, "recv writes to the new tensor that .float() makes", "belongs"),
    ],
)
def test_what_is_received_into_a_copy_is_lost(capsys, ranks, receive, copy, mend):
    held, (said,) = remarks(capsys, ranks, takes(receive))
    assert held[1] == [0.0] * 4
    assert said.startswith(f"rank 1, line {line_in(receive, 'recv(')}: {copy}, and that dies")
    assert mend in said


def keeps_a_name(x, rows):
    part = x[rows]
    dist.recv(part, 0)
    x[rows] = part


def keeps_it_in_the_call(x, rows):
    dist.recv(part := x[rows], 0)
    x[rows] = part


def keeps_it_in_a_container(x, rows):
    parts = deque([x[rows]])
    dist.recv(parts[0], 0)
    x[rows] = parts[0]


def takes_a_view(x, rows):
    dist.recv(x[0:2], 0)


def takes_a_view_by_method(x, rows):
    dist.irecv(x.view(2, 2).reshape(-1).narrow(0, 0, 2), 0).wait()


def converts_to_what_it_is(x, rows):
    y = torch.zeros(2)
    dist.recv(y.float(), 0)
    x[rows] = y


def waits_for_a_token(x, rows):
    dist.recv(torch.empty(2), 0)


def waits_for_a_token_like_x(x, rows):
    dist.recv(x.new_empty(2), 0)


def helps(x, rows):
    def receive(buffer):
        dist.recv(buffer, 0)
        return buffer

    x[rows] = receive(x[rows])


@WAYS
@pytest.mark.parametrize(
    "receive",
    [
        keeps_a_name,
        keeps_it_in_the_call,
        keeps_it_in_a_container,
        takes_a_view,
        takes_a_view_by_method,
        converts_to_what_it_is,
        waits_for_a_token,
        waits_for_a_token_like_x,
        helps,
    ],
)
def test_what_is_kept_or_meant_to_be_thrown_away_is_not_remarked(capsys, ranks, receive):
    held, said = remarks(capsys, ranks, takes(receive))
    assert said == []
    assert (sum(held[1]) == 2) == (not receive.__name__.startswith("waits"))


@WAYS
def test_one_tensor_of_a_list_may_be_received_into_again(capsys, ranks):
    def answer():
        parts = [torch.zeros(2), torch.zeros(2)]
        for number in range(3):
            if dist.get_rank() == 0:
                dist.send(torch.full((2,), number + 1.0), 1)
            else:
                dist.recv(parts[0], 0)
        return parts[0].tolist()

    held, said = remarks(capsys, ranks, answer)
    assert (held[1], said) == ([3.0, 3.0], [])


@WAYS
def test_a_collective_into_a_copy_is_lost_where_it_writes(capsys, ranks):
    def answer():
        x = torch.ones(2, 3)
        dist.all_reduce(x.t().contiguous())
        dist.broadcast(x.half(), 0)
        dist.broadcast_object_list([[1], 2][:1], 0)

    _, said = remarks(capsys, ranks, answer)
    assert [text.split(",")[0] for text in said] == ["ranks 0 and 1", "rank 1"]
    assert ".contiguous()" in said[0]
    assert "broadcast writes to the new tensor that .half() makes" in said[1]


# Warnings. ----------------------------------------------------------------------------


@WAYS
def test_a_warning_of_all_ranks_is_said_once_with_the_students_line(capsys, ranks):
    def answer():
        for _ in range(3):
            warnings.warn("mind the gap", stacklevel=1)
        torch.tensor(torch.ones(2))
        if dist.get_rank() == 1:
            warnings.warn("an old name", FutureWarning, stacklevel=1)

    _, (own, torchs, old) = remarks(capsys, ranks, answer)
    first = line_in(answer, "mind the gap")
    assert own == f"ranks 0 and 1, line {first}: UserWarning: mind the gap"
    assert torchs.startswith(f"ranks 0 and 1, line {first + 1}: UserWarning: To copy construct")
    assert old == f"rank 1, line {first + 3}: FutureWarning: an old name"


@WAYS
def test_torch_warns_of_a_collective_in_autograds_history(capsys, ranks):
    def answer():
        w = torch.ones(2, requires_grad=True)
        y = w * 2
        dist.all_reduce(y)
        (y * y).sum().backward()
        return w.grad.tolist()

    held, (said,) = remarks(capsys, ranks, answer)
    assert held == 2 * [[16.0, 16.0]]
    assert said.startswith(
        f"ranks 0 and 1, line {line_in(answer, 'backward')}: UserWarning: c10d::allreduce_: an"
        " autograd kernel was not registered"
    )
    assert "Triggered internally" not in said


def test_gathered_tensors_get_the_history_that_torch_gives_them():
    """As in a plain world, where backward then warns and goes no further."""

    def answer():
        out = [torch.zeros(2) for _ in range(2)]
        dist.all_gather(out, torch.ones(2, requires_grad=True) * 2)
        return [x.requires_grad for x in out]

    assert list(grader.run(answer, 2)) == 2 * [[True, True]]


@WAYS
def test_names_that_torch_gives_up_are_no_matter_of_the_program(capsys, ranks):
    def answer():
        dist.all_gather_into_tensor(torch.empty(4), torch.ones(2))
        dist.barrier()

    assert remarks(capsys, ranks, answer)[1] == []


# In a verdict. ------------------------------------------------------------------------


def judged(function, expected):
    exercise = declare(
        signature="answer() -> object",
        summary="a toy",
        inputs=lambda draw: [draw.case("a")],
        expected=lambda case: expected,
        hints=("none",),
        world_sizes=(2,),
        allowed=None,
    )
    submission = Submission.from_function(function, "answer")
    return Judge(default_launcher(), Settings(1)).judge(exercise, submission)


def test_a_verdict_says_what_there_is_to_remark():
    passed = judged(reduces_two_shapes, 2 * [[4.0] * 6])
    assert passed.status is Status.PASSED
    assert passed.message.startswith("all_reduce takes tensors of different shapes")

    failed = judged(takes(by_index), [[0.0] * 4, [1.0, 0.0, 1.0, 0.0]])
    assert failed.diagnosis == "wrong_value"
    assert "recv writes to the copy" in plain(exercise_report(failed))
