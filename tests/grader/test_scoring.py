"""What an answer earns: nothing for doing nothing, and at most half where it misses the point."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from grader.api import catalogue
from grader.exercise.cases import Kind
from grader.exercise.limits import messages, point, rounds
from grader.judge.assessment import assess
from grader.judge.judge import Judge, Settings
from grader.judge.scoring import earns_points
from grader.submission.submission import Submission
from headcount.core.values import tensors_in
from headcount.core.verdict import Diagnosis, Failure
from headcount.launch.launchers import default_launcher
from headcount.launch.world import Outcome, RankResult
from headcount.trace.trace import Trace
from tests import declarations
from tests.grader.test_judge import TOY, declare, judge

KIND = Kind(torch.float32, (3,))


def _first(arguments):
    return next(iter(tensors_in(list(arguments))), None)


#: What an answer returns that does nothing, of its arguments.
IDLE = {
    "nothing": lambda *args: None,
    "the tensor": lambda *args: _first(args),
    "a list of it": lambda *args: [_first(args)],
    "its arguments": lambda *args: list(args),
    "an empty list": lambda *args: [],
    "zero": lambda *args: 0.0,
    "zeros": lambda *args: None if _first(args) is None else torch.zeros_like(_first(args)),
}

PLAIN = [name for name, exercise in catalogue().items() if exercise.adapter is None]
ADAPTED = [name for name in catalogue() if name not in (*PLAIN, "BucketedDDP", "VECTOR_ADD_CPP")]


@pytest.mark.parametrize("name", PLAIN)
def test_no_case_that_earns_is_passed_by_doing_nothing(name):
    exercise = catalogue()[name]
    for n in exercise.world_sizes:
        for case in exercise.cases(1, n):
            silence = Trace(((),) * n)
            for how, idle in IDLE.items():
                given = [case.arguments(rank) for rank in case.ranks]
                results = tuple(RankResult(idle(*args), args) for args in given)
                verdict, _ = assess(exercise, case, Outcome(results, None, silence, (), 0.0))
                assert not (verdict.passed and earns_points(exercise, case)), (n, case.name, how)


@pytest.mark.parametrize("name", catalogue())
def test_a_run_that_ends_before_its_results_gets_a_verdict(name):
    """Whatever an exercise says of values, it says nothing where there are none."""
    exercise = catalogue()[name]
    n = min(exercise.world_sizes, key=lambda size: (size < 2, size))
    for case in exercise.cases(1, n):
        for diagnosis in (Diagnosis.EXCEPTION, Diagnosis.DEADLOCK, Diagnosis.NONDETERMINISTIC):
            ended = Outcome((), Failure(diagnosis, "it ended", 0), Trace(((),) * n), (), 0.0)
            assert assess(exercise, case, ended)[0].diagnosis is diagnosis


#: The same where a call is more than passing arguments; ``first`` is the first tensor.
_BODIES = ("pass", "return first", "return first.clone()", "return [first]", "return list(args)")

_SOURCE = """
import sys
import torch

{top}

def {name}(*args, **more):
    first = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
    {body}
"""


def _earned(name, source, sizes=(1, 2)):
    exercise = catalogue()[name]
    submission = Submission.from_bytes(source.encode(), f"{name}.py", {name})
    sizes = tuple(n for n in sizes if n in exercise.world_sizes)
    verdict = Judge(default_launcher(), Settings(1, sizes)).judge(exercise, submission)
    assert verdict.cases, verdict.message
    return verdict.score


@pytest.mark.parametrize("body", _BODIES)
@pytest.mark.parametrize("name", [*ADAPTED, "broadcast", "shift", "all_gather"])
def test_an_answer_that_does_nothing_earns_nothing(name, body):
    assert _earned(name, _SOURCE.format(name=name, body=body, top="")) == 0


@pytest.mark.parametrize("name", ["shift", "stuck_ranks", "barrier"])
def test_an_answer_that_leaves_when_it_is_loaded_earns_nothing(name):
    source = _SOURCE.format(name=name, body="return LEAVE", top="LEAVE = sys.exit(0)")
    assert _earned(name, source) == 0


def test_an_answer_that_refuses_everything_earns_nothing():
    assert _earned("pick_backend", "def pick_backend(device_type): raise ValueError") == 0
    additions = catalogue()["VECTOR_ADD_CPP"]
    asking = [case.name for case in additions.cases(1, 1) if earns_points(additions, case)]
    assert len(asking) > 3
    assert not [name for name in asking if "misfits" in name]


_IDLE_DDP = """
from torch import nn

class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module

    def forward(self, *args, **more):
        return self.module(*args, **more)

    def finish_gradient_synchronization(self):
        pass
"""


def test_a_wrapper_that_does_nothing_earns_nothing():
    assert _earned("BucketedDDP", _IDLE_DDP) == 0


def test_every_exercise_asks_for_something_at_every_size():
    for exercise in catalogue().values():
        for n in exercise.world_sizes:
            cases = exercise.cases(1, n)
            asking = sum(earns_points(exercise, case) for case in cases)
            alone = n == 1 and len(exercise.world_sizes) > 1
            assert alone or asking >= len(cases) / 4, (exercise.name, n)


# The share. -----------------------------------------------------------------------


def _shifts(draw):
    return [
        draw.case("by 1", x=draw.per_rank(KIND), k=1),
        draw.case("by 0", x=draw.per_rank(KIND), k=0),
    ]


SHIFT = declare(
    signature="f(x: Tensor, k: int) -> Tensor",
    inputs=_shifts,
    expected=lambda c: [c.x[(r - c.k) % c.n] for r in c.ranks],
    limits=(messages("=", lambda c: c.n if c.k else 0), point(rounds("≤", lambda c: 1))),
    world_sizes=(2,),
)


def _shifted(x, k, rounds=1, wrong=()):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k in wrong:
        return x + 1
    if k == 0:
        return x.clone()
    y = torch.empty_like(x)
    if rounds == 2 and rank:
        dist.recv(y, 1 - rank)
        dist.send(x, 1 - rank)
        return y
    request = dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n) if rounds == 1 else (request.wait(), dist.recv(y, 1 - rank))
    request.wait()
    return y


def test_a_case_that_asks_for_nothing_must_pass_and_earns_nothing():
    idle = judge(lambda x, k: x.clone(), SHIFT)
    assert idle.score == 0
    # its traffic, too, is that of doing nothing
    assert [case.passed for case in idle.cases] == [False, True, False, False]
    # of "by 1" and two limits nothing is lost, and "by 0" costs its share
    wrong_alone = judge(lambda x, k: _shifted(x, k, wrong=(0,)), SHIFT)
    assert wrong_alone.score == 0.75
    assert judge(_shifted_well, SHIFT).score == 1


def _shifted_well(x, k):
    return _shifted(x, k)


def test_missing_the_point_costs_half_and_is_said_in_a_sentence():
    verdict = judge(lambda x, k: _shifted(x, k, rounds=2), SHIFT)
    assert verdict.score == 0.5
    assert verdict.diagnosis is Diagnosis.TOO_MANY_ROUNDS
    assert verdict.message == (
        "2 ranks, by 1: rounds: 2 (should be at most 1)\n"
        "Right values, but 2 rounds instead of at most 1: that is the point of this exercise, so"
        " it earns at most half its points."
    )


def _hangs_at_3(x, k, slow):
    if dist.get_world_size() == 3:
        dist.recv(torch.zeros(1), (dist.get_rank() + 1) % 3)
    return _shifted(x, k, rounds=2 if slow else 1)


@pytest.mark.parametrize("slow", [True, False])
def test_an_answer_that_hangs_at_any_size_earns_less_than_one_that_is_slow(slow):
    exercise = declarations.changed(SHIFT, world_sizes=(2, 3))
    verdict = judge(lambda x, k: _hangs_at_3(x, k, slow), exercise)
    assert verdict.score == 0.25
    assert verdict.message.endswith("An answer that hangs earns at most a quarter of its points.")
    missed = "there are also 2 rounds instead of at most 1: that is the point of this exercise."
    assert (missed in verdict.message) == slow
    assert "half" not in verdict.message


def test_an_answer_that_always_hangs_earns_nothing_and_is_told_no_price():
    exercise = declarations.changed(SHIFT, world_sizes=(3,))
    verdict = judge(lambda x, k: _hangs_at_3(x, k, False), exercise)
    assert verdict.score == 0
    assert "\n" not in verdict.message


def test_missing_what_is_not_the_point_costs_its_case_alone():
    exercise = declarations.changed(
        SHIFT, limits=(messages("=", lambda c: c.n if c.k else 0), rounds("≤", lambda c: 1))
    )
    verdict = judge(lambda x, k: _shifted(x, k, rounds=2), exercise)
    assert verdict.score == round(2 / 3, 3)
    assert "the point" not in verdict.message


def test_the_point_may_be_a_case_and_what_became_of_it():
    exercise = declarations.changed(
        SHIFT, limits=(), point=lambda one: one.case.k == 1 and one.diagnosis == "wrong_value"
    )
    verdict = judge(lambda x, k: _shifted(x, k, wrong=(1,)), exercise)
    said = "the point of the exercise, so it earns at most half its points."
    assert verdict.message.endswith(said)
    assert "the point" not in judge(lambda x, k: None if k else x.clone(), exercise).message


def test_values_that_are_wrong_twice_are_not_said_to_be_two_faults():
    exercise = declarations.changed(
        SHIFT, limits=(), point=lambda one: one.case.k == 0 and one.diagnosis == "wrong_value"
    )
    message = judge(lambda x, k: _shifted(x, k, wrong=(0, 1)), exercise).message
    assert message.startswith("2 ranks, by 1: ")
    assert "\nNor is it right on 2 ranks, by 0: " in message
    assert "It also fails" not in message


def test_an_exercise_that_each_rank_works_out_alone_asks_on_one_rank_too():
    assert earns_points(TOY["twice"], TOY["twice"].cases(1, 1)[0])
    assert not earns_points(TOY["pass_on"], TOY["pass_on"].cases(1, 1)[0])
    assert earns_points(TOY["pass_on"], TOY["pass_on"].cases(1, 2)[0])


def test_a_run_that_passes_may_get_a_remark():
    exercise = declarations.changed(
        SHIFT, remark=lambda c, trace: f"{trace.traffic.messages} messages" if c.k else ""
    )
    verdict = judge(_shifted_well, exercise)
    assert (verdict.passed, verdict.message) == (True, "2 messages")
    assert judge(lambda x, k: x, exercise).message.startswith("2 ranks, by 1: ")
