"""An exercise that nobody has begun is told from one that was begun and raises."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.distributed as dist

import grader
from grader.exercise.cases import Kind
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.program import is_stub
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from tests.declarations import declare

TWICE = declare(
    signature="twice(x: Tensor) -> Tensor",
    summary="x doubled",
    inputs=lambda draw: [
        draw.case(str(count), x=draw.per_rank(Kind(torch.float32, (count,)))) for count in (1, 3)
    ],
    expected=lambda c: [2 * x for x in c.x],
    world_sizes=(1, 2),
    hints=("first",),
)


def judge(answer):
    if not isinstance(answer, Submission):
        answer = Submission.from_function(answer, "twice")
    return Judge(default_launcher(), Settings(1)).judge(TWICE, answer)


def bare():
    raise NotImplementedError


def documented(x, *rest, key=3, **named):
    """With an invitation."""
    # your code here
    raise NotImplementedError("to do")


@functools.lru_cache
def decorated():
    raise NotImplementedError


class Untouched(torch.nn.Module):
    """As students find it."""

    buckets = 3

    def __init__(self, module):
        super().__init__()
        raise NotImplementedError

    @staticmethod
    def helper():
        raise NotImplementedError

    @property
    def size(self):
        raise NotImplementedError


@pytest.mark.parametrize("stub", [bare, documented, decorated, Untouched])
def test_a_stub_does_nothing_but_raise(stub):
    assert is_stub(stub)


def code_behind():
    raise NotImplementedError
    print("somebody wrote this, and forgot the line above")


def half_written():
    rank = dist.get_rank()
    raise NotImplementedError(rank)


def stores():
    half = 3  # noqa: F841
    raise NotImplementedError


def branches(x):
    if x:
        raise NotImplementedError


def computes(x):
    raise NotImplementedError(x + 1)


def another_error():
    raise ValueError


def gives_it():
    return NotImplementedError


class Begun:
    def __init__(self):
        self.rank = 1

    def rest(self):
        raise NotImplementedError


@pytest.mark.parametrize(
    "begun",
    [
        code_behind, half_written, stores, branches, computes, another_error, gives_it, Begun,
        type("Empty", (), {}), len, 3, "NotImplementedError",
    ],
    ids=lambda begun: getattr(begun, "__name__", str(begun)),
)  # fmt: skip
def test_whatever_somebody_has_written_is_no_stub(begun):
    assert not is_stub(begun)


@pytest.mark.parametrize("source", ["answer.py", "live"])
def test_an_untouched_stub_is_not_attempted(source):
    def twice(x):
        """Twice."""
        raise NotImplementedError

    text = b"def twice(x):\n    '''Twice.'''\n    raise NotImplementedError\n"
    answer = twice if source == "live" else Submission.from_bytes(text, source)
    verdict = judge(answer)
    assert verdict.diagnosis is Diagnosis.NOT_ATTEMPTED
    assert verdict.score == 0


@pytest.mark.parametrize("source", ["answer.py", "live"])
def test_a_half_written_answer_raises_at_a_line_and_keeps_its_points(source):
    def twice(x):
        if x.numel() > 1:
            return x + x
        raise NotImplementedError

    text = (
        b"def twice(x):\n    if len(x) > 1:\n        return x + x\n    raise NotImplementedError\n"
    )
    answer = twice if source == "live" else Submission.from_bytes(text, source)
    verdict = judge(answer)
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert "twice still raises NotImplementedError" in verdict.message
    assert 0 < verdict.score < verdict.max_score


def test_what_torch_has_not_implemented_is_an_exception_with_its_words():
    verdict = judge(lambda x: x.to_sparse().view(-1))
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert "NotImplementedError" in verdict.message
    assert "still raises" not in verdict.message


def test_a_module_without_forward_is_asked_whether_it_is_misspelt():
    class Wrapper(torch.nn.Module):
        def foward(self, x):
            return x

    verdict = judge(lambda x: Wrapper()(x))
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert '[Wrapper] is missing the required "forward" function' in verdict.message
    assert "should foward be called forward?" in verdict.message


def test_simulated_ranks_tell_a_stub_from_what_calls_one():
    assert grader.simulate(bare, 2, may_fail=True).failure.diagnosis is Diagnosis.NOT_ATTEMPTED
    failure = grader.simulate(lambda: bare(), 2, may_fail=True).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "bare still raises NotImplementedError" in failure.message
