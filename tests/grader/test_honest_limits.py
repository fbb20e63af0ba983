"""Programs that mean no harm meet limits of the grader's: each is named, and nobody is accused."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest
import torch.distributed as dist

import grader
from grader.submission.submission import Submission, live_program
from headcount.core.events import Posted
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.rank import rank_store, recorder
from headcount.rank.recorder import Recorder


def store():
    return dist.distributed_c10d._get_default_store()


def marks_without_end():
    for _ in range(recorder.MARKS + 1):
        grader.mark("here")


def many_groups():
    for _ in range(recorder.GROUPS):
        dist.new_group([0])


def long_key():
    store().set("k" * (rank_store.LONGEST_KEY + 1), "v")


def long_value():
    store().set("k", "v" * (rank_store.LONGEST_VALUE + 1))


def many_entries():
    for _ in range(rank_store.MANY + 1):
        store().set("k", "v")


@pytest.mark.parametrize(
    "program, says",
    [
        (marks_without_end, "mark is called more than 50,000 times in one call"),
        (many_groups, "a rank can be in 64 groups"),
        (long_key, "keys of up to 512 characters"),
        (long_value, "values of up to 65,536 bytes"),
        (many_entries, "a rank can put 4096 entries into the store"),
    ],
)
def test_a_limit_is_an_exception_at_the_line_that_meets_it(program, says):
    failure = grader.run(program, 1, may_fail=True, seconds=60).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert says in failure.message
    assert failure.site.line


def test_adding_to_a_text_in_the_store_is_said():
    def program():
        store().set("k", "text")
        store().add("k", 1)

    failure = grader.run(program, 1, may_fail=True).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "k' of the store, which holds no number" in failure.message


def test_a_closed_store_says_so():
    job = Job("f", ((), ()))

    def program():
        store().set("k", "v")

    with ProcessWorld(default_launcher(), 2, live_program(program), subgroups=False) as world:
        failure = world.run(job).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "this exercise leaves the store closed" in failure.message


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
@pytest.mark.parametrize("name", ["d" * 1300, "caf\udce9"], ids=["long", "not UTF-8"])
def test_whatever_a_file_is_called(start, name):
    source = """
def swap():
    import torch, torch.distributed as dist
    other, got = 1 - dist.get_rank(), torch.zeros(1)
    request = dist.isend(torch.ones(1), other)
    dist.recv(got, other)
    request.wait()
    if {fails}:
        raise ValueError("no")
    return got.item()
"""
    for fails in (False, True):
        space = {}
        exec(compile(source.format(fails=fails), f"/home/{name}.py", "exec"), space)
        run = start(space["swap"], 2, may_fail=True)
        if fails:
            assert run.failure.diagnosis is Diagnosis.EXCEPTION
            assert "ValueError: no" in run.failure.message
        else:
            assert list(run) == [1.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_answer_for_its_rank():
    def program():
        child = os.fork()
        if child == 0:
            return "child"  # it should have left
        os.waitpid(child, 0)
        return "rank"

    assert list(grader.run(program, 2)) == ["rank", "rank"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_that_communicates_is_told():
    def program():
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                dist.barrier()
            except RuntimeError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        return os.read(read, 1000).decode()

    (said,) = grader.run(program, 1)
    assert "forked by a rank and is none itself" in said


def test_threads_are_heard_in_the_order_of_their_numbers():
    """Each of two threads stops between taking a number and telling of it, if it can."""
    told, meet = [], threading.Barrier(2)

    def emit(event, flush):
        if isinstance(event, Posted):
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(0.2)  # both are here only if nothing orders them
            told.append(event.op)

    matcher = Recorder(0, emit)
    threads = [
        threading.Thread(target=matcher.post, args=("send", "world"), kwargs={"peer": 1})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [0, 1]
    assert meet.broken


def test_a_collective_while_a_file_is_loaded_is_no_offence():
    source = b"""
import torch, torch.distributed as dist
def together():
    total = torch.ones(1)
    dist.all_reduce(total)
    return total.item()
RANKS = together()
def answer():
    return RANKS
"""
    program = Submission.from_bytes(source, "answer.py", ["answer"]).program
    with ProcessWorld(default_launcher(), 2, program) as world:
        outcome = world.run(Job("answer", ((), ()), allowed=None))
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == [2.0, 2.0]
