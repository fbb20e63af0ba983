"""Ranks, roots, tags and groups that are not there: the same words in real and simulated worlds."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

import grader
from grader.exercise.cases import Kind
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from support.worlds import play
from tests.declarations import declare


def one():
    return torch.ones(1)


def pair():
    return dist.new_group([0, 1])


def gone():
    group = dist.new_group([0, 1])
    dist.destroy_process_group(group)
    return group


NO_RANK = "there is no rank {} in a group of 2; its ranks are 0 to 1"
TO_ITSELF = "rank 0 cannot talk to itself: the peer is the same as the rank that calls"
NOT_IN_GROUP = "rank 5 is not in this group of ranks 0 and 1"
GONE = "the group of ranks 0 and 1 is no more: this rank has called destroy_process_group on it"

WRONG = {
    "send": (lambda: dist.send(one(), 9), NO_RANK.format(9)),
    "isend": (lambda: dist.isend(one(), -1), NO_RANK.format(-1)),
    "recv": (lambda: dist.recv(one(), 2), NO_RANK.format(2)),
    "irecv": (lambda: dist.irecv(one(), -1), NO_RANK.format(-1)),
    "group_dst": (lambda: dist.send(one(), group_dst=5), NO_RANK.format(5)),
    "group_src": (lambda: dist.recv(one(), group_src=5, group=pair()), NO_RANK.format(5)),
    "P2POp": (lambda: dist.P2POp(dist.isend, one(), 9), NO_RANK.format(9)),
    "broadcast": (lambda: dist.broadcast(one(), 9), NO_RANK.format(9)),
    "broadcast from −1": (lambda: dist.broadcast(one(), -1), NO_RANK.format(-1)),
    "reduce": (lambda: dist.reduce(one(), 2), NO_RANK.format(2)),
    "gather": (lambda: dist.gather(one(), None, 7), NO_RANK.format(7)),
    "scatter": (lambda: dist.scatter(one(), None, 7), NO_RANK.format(7)),
    "broadcast_object_list": (
        lambda: dist.broadcast_object_list([1], 4),
        NO_RANK.format(4),
    ),
    "no whole number": (
        lambda: dist.send(one(), 3 / 2),
        "a rank is a whole number, not the float 1.5; // divides whole numbers",
    ),
    "send to itself": (lambda: dist.send(one(), dist.get_rank()), TO_ITSELF),
    "isend to itself": (lambda: dist.isend(one(), dist.get_rank()), TO_ITSELF),
    "recv from itself": (lambda: dist.recv(one(), dist.get_rank()), TO_ITSELF),
    "root of a group": (lambda: dist.broadcast(one(), 5, group=pair()), NOT_IN_GROUP),
    "peer in a group": (lambda: dist.send(one(), 5, group=pair()), NOT_IN_GROUP),
    "negative tag": (
        lambda: dist.send(one(), 1, tag=-1),
        "there is no tag -1; tags are 0 to 2147483647",
    ),
    "negative tag of a wildcard": (lambda: dist.recv(one(), tag=-1), "there is no tag -1"),
    "huge tag": (lambda: dist.isend(one(), 1, tag=2**40), f"there is no tag {2**40}"),
    "group of strangers": (
        lambda: dist.new_group([0, 5]),
        "new_group([0, 5]): there is no rank 5 in a group of 2; its ranks are 0 to 1",
    ),
    "group of twins": (lambda: dist.new_group([0, 0]), "a rank can be in a group only once"),
    "group of nobody": (lambda: dist.new_group([]), "needs at least one rank"),
    "collective on a destroyed group": (lambda: dist.all_reduce(one(), group=gone()), GONE),
    "message on a destroyed group": (lambda: dist.isend(one(), 1, group=gone()), GONE),
    "destroyed twice": (lambda: dist.destroy_process_group(gone()), GONE),
    "the default group destroyed": (
        lambda: dist.destroy_process_group(),
        "leave the call out, or name a group of your own",
    ),
}


@pytest.mark.parametrize("world", ["real", "simulated"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_there_is_said_where_it_is_named(name, world):
    call, text = WRONG[name]

    def answer():
        call()

    if world == "real":
        failure = play(answer, 2, allowed=None).failure
    else:
        failure = grader.simulate(answer, 2, may_fail=True).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert failure.rank == 0
    assert text in failure.message
    assert failure.site is not None


def _outside():
    group = dist.new_group([0, 1])
    x = torch.ones(2)
    for _ in range(2):
        dist.all_reduce(x, group=group)
    return x.tolist()


WARNING = (
    f"ranks 2 and 3 call all_reduce at line {_outside.__code__.co_firstlineno + 4} on groups that"
    " they are not in; torch does nothing there, and leaves the tensors as they are"
)


def test_a_call_on_a_group_of_others_is_warned_of_once(capsys):
    assert list(grader.run(_outside, 4)) == [[4.0, 4.0]] * 2 + [[1.0, 1.0]] * 2
    assert capsys.readouterr().out == f"warning: {WARNING}\n"


def test_a_simulation_warns_of_it_too(capsys):
    grader.simulate(_outside, 4)
    assert capsys.readouterr().out == f"warning: {WARNING}\n"


def test_a_wrong_value_says_that_a_call_did_nothing():
    def total(x):
        group = dist.new_group([0])
        dist.all_reduce(x, group=group)

    exercise = declare(
        signature="total(x: Tensor) -> None",
        summary="the sum",
        inputs=lambda draw: [draw.case("a", x=draw.per_rank(Kind(torch.float32, (3,))))],
        expected=lambda c: [sum(c.x)] * c.n,
        world_sizes=(2,),
        hints=("first", "second"),
        allowed=frozenset({"all_reduce", "new_group"}),
        result="x",
    )
    submission = Submission.from_function(total, "total")
    case = Judge(default_launcher(), Settings(1)).judge(exercise, submission).gravest_failure
    assert case.diagnosis is Diagnosis.WRONG_VALUE
    assert any("rank 1 calls all_reduce at line" in line for line in case.detail)


def test_a_group_of_ones_own_may_be_destroyed():
    def answer():
        x = torch.ones(1)
        group = dist.new_group([0, 1])
        dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
        dist.all_reduce(x)
        return x.item()

    for results in (grader.run(answer, 2), grader.simulate(answer, 2)):
        assert list(results) == [4.0, 4.0]


MATRIX = "not a float32 tensor of shape (2, 1); list(x) makes a list of the rows of x, which share"


def of_root(call):
    return call(torch.ones(2, 1) if dist.get_rank() == 0 else None)


NO_TENSORS = {
    "all_reduce": (
        lambda: dist.all_reduce([1.0, 2.0]),
        "all_reduce takes a tensor, not a list of 2; torch.tensor makes one of it",
    ),
    "send": (
        lambda: dist.send(3, 1),
        "send takes a tensor, not the int 3; torch.tensor([3]) holds it",
    ),
    "broadcast": (
        lambda: dist.broadcast([one()], 0),
        "broadcast takes a tensor, not a list of 1; torch.stack makes one of it",
    ),
    "into": (
        lambda: dist.all_gather_into_tensor([one(), one()], one()),
        "all_gather_into_tensor takes a tensor as output_tensor, not a list of 2; torch.empty",
    ),
    "all_gather": (
        lambda: dist.all_gather(torch.ones(2, 1), one()),
        f"all_gather takes a list of tensors as tensor_list, {MATRIX}",
    ),
    "scatter": (
        lambda: of_root(lambda x: dist.scatter(one(), x, 0)),
        f"scatter takes a list of tensors as scatter_list, {MATRIX}",
    ),
    "gather": (
        lambda: of_root(lambda x: dist.gather(one(), x, 0)),
        f"gather takes a list of tensors as gather_list, {MATRIX}",
    ),
    "element": (
        lambda: dist.reduce_scatter(one(), [one(), 2]),
        "reduce_scatter takes a list of tensors as input_list, and element 1 of it is the int 2",
    ),
    "tuple": (
        lambda: dist.all_to_all((one(), one()), [one(), one()]),
        "all_to_all takes a list of tensors as output_tensor_list, not a tuple of 2; list(x) makes",
    ),
}


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
@pytest.mark.parametrize("name", NO_TENSORS)
def test_a_list_where_a_tensor_is_due_and_the_reverse(name, start):
    call, says = NO_TENSORS[name]
    failure = start(call, 2, may_fail=True).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert f"TypeError: {says}" in failure.message


GPU = {
    "set_device": (lambda: torch.cuda.set_device(0), "torch.cuda.set_device"),
    "synchronize": (torch.cuda.synchronize, "torch.cuda.synchronize"),
    "Event": (lambda: torch.cuda.Event(), "torch.cuda.Event"),
    "device": (lambda: torch.cuda.device(0).__enter__(), "torch.cuda.device"),
    "version": (lambda: torch.cuda.nccl.version(), "torch.cuda.nccl.version"),
    "cuda()": (lambda: torch.ones(1).cuda(), "a tensor on cuda"),
    "device=": (lambda: torch.ones(1, device="cuda"), "a tensor on cuda"),
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("start", [grader.run, grader.simulate])
@pytest.mark.parametrize("name", GPU)
def test_a_gpu_that_is_not_there(name, start):
    call, what = GPU[name]
    failure = start(lambda: call(), 2, may_fail=True).failure
    assert f"RuntimeError: there is no GPU here, and {what} needs one" in failure.message


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_what_only_asks_for_a_gpu_is_no_mistake():
    def asks():
        torch.cuda.manual_seed(1)
        torch.cuda.empty_cache()
        return torch.cuda.is_available(), torch.cuda.device_count()

    assert list(grader.run(asks, 1)) == [(False, 0)]
