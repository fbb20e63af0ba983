"""Ranks take sets in orders of their own, as processes with other hash seeds do."""

from __future__ import annotations

import contextlib
import enum

import pytest
import torch
import torch.distributed as dist

from grader import check, run
from grader.api import catalogue
from grader.judge.judge import Judge, Settings
from grader.sandbox.sandboxes import missing, new_sandbox
from grader.submission.modules import ReceivedFiles
from grader.submission.submission import Submission
from headcount.core.errors import RunFailed
from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import Spawner, default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from support.worlds import line_in

NAMES = ["sliding", "full", "linear", "chunked", "local"]
KINDS = {"sliding", "full", "linear"}
Kind = enum.Enum("Kind", ["SUM", "MAX"])


def order_of_a_set():
    return list(set(NAMES))


def order_of_two():
    return list({"max", "first"})


def order_of_a_set_from_outside():
    return [name for name in KINDS]  # noqa: C416


def helper():
    return frozenset(name[0] for name in NAMES)


def order_of_a_set_of_a_helper():
    first, *others = helper()
    return [first, *others]


def order_of_a_difference_of_views():
    names = dict.fromkeys(NAMES).keys()
    return [*(names - {"full"})]


def order_of_enumerators():
    return [kind.name for kind in set(Kind)]


def order_of_tensors():
    return [int(tensor) for tensor in {torch.tensor(0), torch.tensor(1)}]


def order_in_which_they_are_taken_out():
    names, found = {"max", "first"}, []
    while names:
        found.append(names.pop())
    return found


def order_of_hashes():
    return sorted({"max": 0, "first": 1}, key=hash)


def order_of_addresses():
    objects = [object(), object()]
    return [objects.index(one) for one in sorted(objects, key=id)]


def order_of_pairs():
    return [name for _, name in map(tuple, {(1, "max"), (1, "first")})]


@pytest.mark.parametrize(
    "function",
    [
        order_of_a_set,
        order_of_two,
        order_of_a_set_from_outside,
        order_of_a_set_of_a_helper,
        order_of_a_difference_of_views,
        order_of_enumerators,
        order_of_tensors,
        order_in_which_they_are_taken_out,
        order_of_hashes,
        order_of_addresses,
        order_of_pairs,
    ],
)
def test_two_ranks_take_the_same_values_in_different_orders_every_time(function):
    first, again = (list(run(function, 3)) for _ in range(2))
    assert first == again
    assert sorted(first[0]) == sorted(first[1]) == sorted(first[2])
    assert first[0] != first[1]


def test_two_ranks_disagree_on_a_place_that_a_hash_gives():
    first, second = run(lambda: [hash(name) % 2 for name in NAMES], 2)
    assert first == [1 - place for place in second]


def test_what_has_the_same_order_in_every_process_keeps_it():
    def plain():
        id = 5
        numbers = {3, 1, 2}
        pairs = {(1, 2.5), (0, 1.5)}
        stack = ["a", "b"]
        columns = [*zip(*([1, 2], [3, 4]))]  # noqa: B905
        same = [hash(7), id, *dict.fromkeys(NAMES), max(*columns), max(columns, key=sum)]
        return [*numbers, numbers.pop(), *pairs, stack.pop(), *same]

    values = list(run(plain, 3))
    assert values[0] == values[1] == values[2]


def test_a_set_that_changes_in_a_loop_over_it_is_an_error_as_in_plain_python():
    def removes():
        names = {"a", "b", "c"}
        for name in names:
            names.discard(name)

    failure = run(removes, 2, may_fail=True).failure
    assert failure.raised[0] == "RuntimeError"
    assert failure.site.line == line_in(removes, "for name in names")


def test_spawned_ranks_have_the_same_orders():
    with (
        contextlib.closing(Spawner()) as spawner,
        ProcessWorld(spawner, 2, live_program(order_of_a_set), set_orders=True) as world,
    ):
        found = world.run(Job("order_of_a_set", ((), ())))
    assert [result.value for result in found.results] == list(run(order_of_a_set, 2))


@pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")
def test_ranks_in_a_sandbox_have_the_same_orders():
    program = live_program(order_of_a_set)
    with (
        contextlib.closing(new_sandbox()) as sandbox,
        ProcessWorld(sandbox, 3, program, set_orders=True) as world,
    ):
        found = world.run(Job("order_of_a_set", ((),) * 3))
    assert [result.value for result in found.results] == list(run(order_of_a_set, 3))


def sync_parameters(module, src):
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name in set(tensors):  # the order of this rank
        dist.broadcast(tensors[name].data, src)


def test_an_answer_that_needs_one_hash_seed_is_told_so_with_the_line():
    verdict = check(sync_parameters, seed=1).verdict
    assert not verdict.passed
    assert verdict.diagnosis in (Diagnosis.SIZE_MISMATCH, Diagnosis.WRONG_VALUE)
    assert "the same hash seed" in verdict.hint
    assert f"Line {line_in(sync_parameters, 'order of this rank')} takes" in verdict.hint
    # what comes after it is not run, and earns nothing
    assert verdict.score < 0.5


def test_it_is_told_so_where_there_is_one_world_only():
    verdict = check(sync_parameters, seed=1, world_sizes=(2,)).verdict
    assert "the same hash seed" in verdict.hint


def test_a_file_is_told_so():
    text = (
        "import torch.distributed as dist\n\n"
        "def sync_parameters(module, src):\n"
        "    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}\n"
        "    for name in set(own):\n"
        "        dist.broadcast(own[name].data, src)\n"
    )
    exercise = catalogue()["sync_parameters"]
    answer = Submission.from_bytes(text.encode(), "answer.py", [exercise.name])
    verdict = Judge(default_launcher(), Settings(1)).judge(exercise, answer)
    assert "Line 5 takes" in verdict.hint


def test_a_sorted_order_and_a_set_of_what_was_seen_are_right():
    def sync_parameters(module, src):
        tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        seen = set()
        for name in sorted(set(tensors)):
            if tensors[name].data_ptr() not in seen:
                seen.add(tensors[name].data_ptr())
                dist.broadcast(tensors[name].data, src)

    verdict = check(sync_parameters, seed=1).verdict
    assert verdict.passed, verdict.message


def test_another_mistake_of_a_program_with_a_set_is_not_charged_to_the_seed():
    def sync_parameters(module, src):
        for name in sorted(set(dict(module.named_parameters()))):
            dist.broadcast(dict(module.named_parameters())[name].data, src)

    verdict = check(sync_parameters, seed=1, world_sizes=(2,)).verdict
    assert not verdict.passed
    assert "hash seed" not in verdict.hint


def test_a_run_that_needs_one_hash_seed_is_told_so():
    def broadcasts():
        sizes = {name: size for size, name in enumerate(NAMES, 1)}
        for name in set(sizes):
            dist.broadcast(torch.zeros(sizes[name]), 0)

    with pytest.raises(RunFailed) as told:
        run(broadcasts, 2)
    assert told.value.failure.diagnosis is Diagnosis.SIZE_MISMATCH
    line = line_in(broadcasts, "for name in")
    assert f"Line {line} takes the values of a set" in str(told.value)
    assert str(told.value).count("hash seed") == 1


def test_a_module_beside_the_answer_may_make_the_set():
    beside = ReceivedFiles({"names.py": b"def ordered(names):\n    return list(set(names))\n"})
    text = (
        b"import torch.distributed as dist\nfrom names import ordered\n\n"
        b"def sync_parameters(module, src):\n"
        b"    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}\n"
        b"    for name in ordered(own):\n"
        b"        dist.broadcast(own[name].data, src)\n"
    )
    exercise = catalogue()["sync_parameters"]
    answer = Submission.from_bytes(text, "answer.py", [exercise.name], beside)
    assert "hash seed" in Judge(default_launcher(), Settings(1)).judge(exercise, answer).hint


@pytest.mark.parametrize("names", [("max", "first"), ("all_reduce", "broadcast"), ("a", "b")])
def test_no_two_names_are_lucky(names):
    text = (
        "import torch.distributed as dist\n\n"
        "def unblock_order(x):\n"
        "    m, z = x.clone(), x.clone()\n"
        "    do = [lambda: dist.all_reduce(m, dist.ReduceOp.MAX), lambda: dist.broadcast(z, 0)]\n"
        f"    work = dict(zip({names}, do))\n"
        f"    for name in {{*{names}}}:\n"
        "        work[name]()\n"
        "    return m + z\n"
    )
    exercise = catalogue()["unblock_order"]
    answer = Submission.from_bytes(text.encode(), "answer.py", [exercise.name])
    assert "Line 7 takes" in Judge(default_launcher(), Settings(1)).judge(exercise, answer).hint
