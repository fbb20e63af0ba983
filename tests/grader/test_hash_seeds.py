"""Ranks have hash seeds of their own where that may matter, as processes of torchrun's have."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil
import pytest
import torch
import torch.distributed as dist

from grader import check, run
from grader.api import catalogue
from grader.judge.judge import Judge, Settings
from grader.sandbox.sandboxes import missing, new_sandbox
from grader.submission.modules import ReceivedFiles
from grader.submission.submission import Submission, live_program
from headcount.core.errors import RunFailed
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import ForkServer, Spawner, default_launcher
from headcount.launch.process_world import OTHER_SEEDS, ProcessWorld
from headcount.launch.world import Job
from support.worlds import line_in

NAMES = ["sliding", "full", "linear", "chunked", "local"]
KINDS = {"sliding", "full", "linear"}


def order_of_a_set():
    return list(set(NAMES))


def order_of_a_set_from_outside():
    return list(KINDS)


def helper():
    return {name[0] for name in NAMES}


def set_of_a_helper():
    return sorted(helper())


def order_of_objects():
    return hash(object())


def difference_of_views():
    return sorted(dict.fromkeys(NAMES).keys() - {})


def loop_over_a_literal():
    return [name for name in {"a", "b", "c"}]  # noqa: C416


@pytest.mark.parametrize(
    "function",
    [
        order_of_a_set,
        order_of_a_set_from_outside,
        set_of_a_helper,
        order_of_objects,
        difference_of_views,
        loop_over_a_literal,
    ],
)
def test_a_program_that_makes_a_set_or_asks_for_a_hash_may_depend_on_the_seed(function):
    assert live_program(function).hashes


def test_other_programs_do_not():
    def plain(x):
        for name, value in dict.fromkeys(NAMES, 3).items():
            x += value - len(name)
        return x

    assert not live_program(plain, 1).hashes


def test_each_of_the_first_ranks_has_an_order_of_its_own_the_same_every_time():
    first, again = (list(run(order_of_a_set, 3)) for _ in range(2))
    assert first == again
    assert len(set(map(tuple, first))) == OTHER_SEEDS + 1
    assert all(sorted(names) == sorted(NAMES) for names in first)


def test_spawned_ranks_have_the_same_seeds():
    with (
        contextlib.closing(Spawner()) as spawner,
        ProcessWorld(spawner, 2, live_program(order_of_a_set), hashing=True) as world,
    ):
        found = world.run(Job("order_of_a_set", ((), ())))
    assert [result.value for result in found.results] == list(run(order_of_a_set, 2))


@pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")
def test_ranks_in_a_sandbox_have_the_same_seeds_and_are_sealed():
    def order():
        try:
            open("/built/made", "w").close()
        except OSError as error:
            return type(error).__name__, list(set(NAMES))
        return "written", []

    def forks():
        import os

        try:
            os.fork()
        except OSError as error:
            return type(error).__name__

    program = live_program(order)
    with contextlib.closing(new_sandbox()) as sandbox:
        with ProcessWorld(sandbox, 3, program, hashing=True) as world:
            found = world.run(Job("order", ((),) * 3))
        with ProcessWorld(sandbox, 2, live_program(forks), hashing=True) as world:
            refused = world.run(Job("forks", ((),) * 2))
    kinds, orders = zip(*(result.value for result in found.results), strict=True)
    assert set(kinds) == {"OSError"}
    assert list(orders[:OTHER_SEEDS]) == list(run(order_of_a_set, 3))[:OTHER_SEEDS]
    assert [result.value for result in refused.results] == ["PermissionError"] * 2


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


def test_a_server_with_another_seed_that_dies_is_started_again():
    launcher = default_launcher()
    run(order_of_a_set, 2)
    for child in psutil.Process(launcher.pid).children():
        child.kill()
        child.wait()
    assert len(set(map(tuple, run(order_of_a_set, 2)))) == 2


def test_the_servers_with_other_seeds_end_with_theirs():
    with contextlib.closing(ForkServer()) as server:
        with ProcessWorld(server, 2, live_program(order_of_a_set), hashing=True) as world:
            world.run(Job("order_of_a_set", ((), ())))
        siblings = psutil.Process(server.pid).children()
        assert len(siblings) == OTHER_SEEDS
    _, alive = psutil.wait_procs(siblings, timeout=10)
    assert not alive


def test_a_rank_with_another_seed_that_dies_is_named_and_signals_reach_it():
    def dies():
        set(NAMES)
        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        dist.barrier()

    failure = run(dies, 2, may_fail=True).failure
    assert failure.diagnosis is Diagnosis.CRASHED
    assert failure.rank == 1

    def hangs():
        while set(NAMES):
            continue  # for ever

    failure = run(hangs, 2, may_fail=True, seconds=1).failure
    assert failure.diagnosis is Diagnosis.TIMEOUT
    first = line_in(hangs, "while set")
    assert {failure.site.line} <= {first, first + 1}


def test_a_module_beside_the_answer_may_make_the_set():
    beside = ReceivedFiles({"names.py": b"def ordered(names):\n    return list(set(names))\n"})
    text = b"from names import ordered\n\ndef broadcast(x, src):\n    return ordered('ab')\n"
    assert Submission.from_bytes(text, "answer.py", ["broadcast"], beside).hashing
