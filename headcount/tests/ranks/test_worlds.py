"""Worlds of processes: whatever a rank does, the cause is named and nothing is left."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import psutil
import pytest
import torch
import torch.distributed as dist

from headcount.core.packing import live_program
from headcount.core.values import Opaque, UnsentTensor
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import Client, default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job, Pause
from headcount.server import ahead
from support.worlds import line_in, play, program_of


def test_results_and_output_come_in_rank_order():
    def answer():
        rank = dist.get_rank()
        time.sleep(0.02 * (3 - rank))  # the last rank ends first
        print("I am", rank)
        print("error stream", file=sys.stderr)
        return rank * 10

    outcome = play(answer, 4)
    assert [r.value for r in outcome.results] == [0, 10, 20, 30]
    assert outcome.output == tuple(f"I am {rank}\nerror stream\n" for rank in range(4))


def test_a_rank_that_trains_imports_no_compiler():
    def answer():
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))])
        optimizer.zero_grad()
        return "torch._dynamo" in sys.modules, "torch._dynamo.exc" in sys.modules

    assert [result.value for result in play(answer, 2).results] == [(True, False)] * 2


def test_what_is_printed_below_python_is_captured_too():
    def answer():
        os.write(1, b"raw\n")
        subprocess.run(["echo", "child"], check=True)

    assert play(answer, 1).output == ("raw\nchild\n",)


def _waits_for_ever():
    dist.recv(torch.zeros(1), dist.get_rank() ^ 1)


LEAVES = [lambda: os._exit(3), os.abort, lambda: os.kill(os.getpid(), signal.SIGKILL)]


@pytest.mark.parametrize("leave", [*LEAVES, _waits_for_ever], ids=["exit", "abort", "kill", "wait"])
def test_what_was_printed_is_heard_however_a_rank_ends(leave):
    def answer():
        print("half a", end=" ")
        print("line", end="", file=sys.stderr)
        sys.stdout.buffer.write(b", and bytes")
        leave()

    outcome = play(answer, 2)
    assert outcome.failure is not None
    assert outcome.output == ("half a line, and bytes",) * 2


def test_arguments_come_back_as_they_are_after_the_call():
    def answer(x, y):
        x.add_(1)
        return y

    result = play(answer, 1, torch.zeros(2), torch.ones(2)).results[0]
    assert result.arguments[0].tolist() == [1.0, 1.0]
    assert result.aliases == (1,)


def test_a_world_is_used_for_many_calls():
    from headcount.core.packing import live_program
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    def answer(x):
        return x + dist.get_rank()

    launcher = default_launcher()
    with ProcessWorld(launcher, 2, live_program(answer)) as world:
        for i in range(5):
            outcome = world.run(Job("answer", ((i,),) * 2))
            assert [r.value for r in outcome.results] == [i, i + 1]
            assert world.usable
    launcher.settle()


def test_a_rank_keeps_nothing_of_what_an_answer_has_returned():
    """Or its memory would grow from call to call."""
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    source = b"""
import gc, weakref
RETURNED = []
class Thing: ...
def answer():
    gc.disable()
    alive = sum(one() is not None for one in RETURNED)
    thing = Thing()
    RETURNED.append(weakref.ref(thing))
    return alive, [thing]
"""
    program = program_of(source, "answer")
    with ProcessWorld(default_launcher(), 1, program) as world:
        alive = [world.run(Job("answer", ((),))).results[0].value[0] for _ in range(3)]
    assert alive == [0, 0, 0]


# Several sizes in one world. ------------------------------------------------------

_SIZES = b"""
import os
import notes
import torch, torch.distributed as dist

SEEN = []

def answer():
    size, rank = dist.get_world_size(), dist.get_rank()
    SEEN.append(size)
    notes.SEEN.append(size)
    ends = dist.new_group([0, size - 1])
    x = torch.tensor([rank + 1])
    dist.all_reduce(x)
    if rank in (0, size - 1):
        dist.all_reduce(x, group=ends)
    request = dist.isend(x, (rank + 1) % size)
    y = torch.empty_like(x)
    dist.recv(y, (rank - 1) % size)
    request.wait()
    return x.item(), y.item(), SEEN, notes.SEEN, os.environ["WORLD_SIZE"]
"""


def _world_of_sizes(source, size, *smaller, collectives=True):
    from headcount.launch.process_world import ProcessWorld

    program = program_of(source, "answer")
    return ProcessWorld(default_launcher(), size, program, smaller=smaller, collectives=collectives)


def test_a_world_serves_smaller_sizes_as_worlds_of_their_own(tmp_path, monkeypatch):
    """No variable, module or group of one size is left to the next."""
    from headcount.launch.world import Job

    (tmp_path / "notes.py").write_text("SEEN = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with _world_of_sizes(_SIZES, 5, 2, 3) as world:
        for n in (2, 3, 5):
            outcome = world.run(Job("answer", ((),) * n, allowed=None))
            assert outcome.failure is None
            assert outcome.trace.world_size == n
            total = n * (n + 1) // 2
            sums = [total * (2 if rank in (0, n - 1) else 1) for rank in range(n)]
            found = [(sums[rank], sums[rank - 1], [n], [n], str(n)) for rank in range(n)]
            assert [result.value for result in outcome.results] == found


def test_without_collectives_all_sizes_of_a_world_share_their_connections():
    from headcount.launch.world import Job

    source = b"""
import psutil, torch, torch.distributed as dist

def answer():
    rank, n = dist.get_rank(), dist.get_world_size()
    given, heard = torch.full((2,), rank), torch.zeros(2, dtype=torch.int64)
    sent = dist.isend(given, (rank + 1) % n)
    dist.recv(heard, (rank - 1) % n)
    sent.wait()
    return heard.tolist(), psutil.Process().num_fds()
"""
    opened = {}
    for collectives in (True, False):
        with _world_of_sizes(source, 4, 2, 3, collectives=collectives) as world:
            for n in (2, 3, 4):
                outcome = world.run(Job("answer", ((),) * n))
                assert outcome.failure is None
                heard, descriptors = zip(*(one.value for one in outcome.results), strict=True)
                assert list(heard) == [[(rank - 1) % n] * 2 for rank in range(n)]
            opened[collectives] = descriptors
    # rank 0 is in all three groups, and the last rank in the largest only
    assert opened[False][0] <= opened[True][0] - 3
    assert opened[False][3] == opened[True][3]


def test_a_module_that_was_imported_in_a_smaller_world_uses_the_new_one():
    """Some of torch's functions have the default group of the import as a default argument."""
    from headcount.launch.world import Job

    source = b"""
import torch
import torch.distributed.nn.functional as functional
import torch.distributed.fsdp.sharded_grad_scaler as scaler

def answer():
    shared = functional.all_reduce(torch.ones(1)).item()
    group = scaler.ShardedGradScaler.__init__.__defaults__[-1]
    return shared, group.size()
"""
    with _world_of_sizes(source, 2, 1) as world:
        for n in (1, 2):
            outcome = world.run(Job("answer", ((),) * n, allowed=None))
            assert outcome.failure is None
            assert [result.value for result in outcome.results] == [(float(n), n)] * n


def test_a_world_has_only_the_sizes_that_were_asked_for():
    from headcount.core.errors import WorldError
    from headcount.launch.world import Job

    with _world_of_sizes(b"def answer(): pass", 3, 2) as world:
        assert world.run(Job("answer", ((),) * 2)).failure is None
        with pytest.raises(WorldError, match="1 argument tuples for 3 ranks"):
            world.run(Job("answer", ((),)))


def test_a_deadlock_of_a_smaller_size_is_found():
    """Ranks that wait for their turn are not waited for."""
    from headcount.launch.world import Job

    source = b"import torch, torch.distributed as dist\n"
    source += b"def answer(): dist.recv(torch.zeros(1), 1 - dist.get_rank())\n"
    with _world_of_sizes(source, 5, 2) as world:
        failure = world.run(Job("answer", ((),) * 2)).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK


def test_a_rank_that_ends_before_its_turn_is_missed_when_it_comes():
    from headcount.launch.world import Job

    with _world_of_sizes(b"def answer(): return 1", 3, 2) as world:
        assert world.run(Job("answer", ((),) * 2)).failure is None
        os.kill(world.pids[2], signal.SIGKILL)
        assert world.run(Job("answer", ((),) * 2)).failure is None
        failure = world.run(Job("answer", ((),) * 3)).failure
    assert (failure.diagnosis, failure.rank) == (Diagnosis.CRASHED, 2)


# What one rank does, and what the world says. -------------------------------------


def _raise():
    raise ValueError("no good")


def _unwritten():
    raise NotImplementedError


def _exit_zero():
    sys.exit(0)


def _exit_text():
    sys.exit("bye")


def _hard_exit():
    os._exit(0)


def _abort():
    os.abort()


def _segfault():
    ctypes.string_at(0)


def _kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def _loop():
    while True:
        pass


def _sleep():
    time.sleep(3600)


def _compute_in_c():
    # in one call, in which no other thread of the interpreter runs
    return sum(itertools.repeat(1))


def _flood():
    for i in range(1_000_000):
        print(i)


def _allocate():
    return torch.ones(10 * 10**9 // 4)


def _allocate_python():
    return bytearray(10 * 10**9)


def _recurse():
    _recurse()


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def _unprintable():
    raise Unprintable


def _nameless():
    class Nameless(type):
        @property
        def __name__(cls):
            raise RuntimeError("not even this")

    class Thing(metaclass=Nameless):
        pass

    return Thing().nothing


def _cuda():
    torch.ones(1).cuda()


def _interrupt():
    raise KeyboardInterrupt


FATES = [
    (_raise, "exception", "ValueError: no good"),
    (_unwritten, "exception", "_unwritten still raises NotImplementedError"),
    (_exit_zero, "exited", "status 0"),
    (_exit_text, "exited", "status 1"),
    (_hard_exit, "exited", "status 0"),
    (_abort, "crashed", "SIGABRT"),
    (_segfault, "crashed", "SIGSEGV"),
    (_kill_myself, "crashed", "SIGKILL"),
    (_loop, "timeout", "rank 1 is still running at line"),
    (_sleep, "timeout", "rank 1 is still running at line"),
    (_compute_in_c, "timeout", "rank 1 is still running at line"),
    (_flood, "output_limit", "rank 1 prints more than 64 kB"),
    (_allocate, "memory_limit", "asked for 10.0 GB"),
    (_allocate_python, "memory_limit", "out of memory"),
    (_recurse, "exception", "RecursionError"),
    (_unprintable, "exception", "Unprintable: (its __str__ raised RuntimeError)"),
    (_nameless, "exception", "AttributeError: 'Thing' object has no attribute 'nothing'"),
    (_cuda, "exception", "rank 1"),
    (_interrupt, "exception", "KeyboardInterrupt"),
]


@pytest.mark.parametrize("leave", [_hard_exit, _kill_myself, _abort, _segfault])
def test_a_rank_that_leaves_without_a_word_is_said_to_leave_at_its_line(leave):
    def answer():
        if dist.get_rank() == 1:
            leave()
        dist.recv(torch.empty(1), 1)

    failure = play(answer, 2).failure
    _, first = inspect.getsourcelines(leave)
    assert failure.site.line == first + 1
    assert f"rank 1, line {first + 1}: the process" in failure.message


def test_a_child_that_leaves_is_not_taken_for_its_rank():
    def answer():
        if dist.get_rank() == 1:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            os.kill(os.getpid(), signal.SIGTERM)
        dist.recv(torch.empty(1), 1)

    failure = play(answer, 2).failure
    assert failure.message == "rank 1: the process is killed by SIGTERM"


@pytest.mark.parametrize("act, word, text", FATES, ids=[act.__name__ for act, *_ in FATES])
def test_the_rank_at_fault_is_named_and_not_its_victims(act, word, text):
    def answer():
        if dist.get_rank() == 1:
            act()
        dist.recv(torch.empty(1), 1)

    failure = play(answer, 4, seconds=1.0 if word == "timeout" else 10.0).failure
    assert failure.diagnosis == word
    assert failure.rank == 1
    assert text in failure.message
    if failure.diagnosis is Diagnosis.EXCEPTION:
        assert failure.site is not None


@pytest.mark.exhaustive
def test_a_dying_rank_is_named_every_time():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        x = torch.ones(1000)
        for _ in range(20):
            request = dist.isend(x, (rank + 1) % n)
            dist.recv(torch.empty(1000), (rank - 1) % n)
            request.wait()
        if rank == 2:
            os._exit(3)
        dist.barrier()

    for _ in range(8):
        failure = play(answer, 4, allowed=None).failure
        assert (failure.diagnosis, failure.rank) == (Diagnosis.EXITED, 2)
        assert "status 3" in failure.message


@pytest.mark.parametrize(
    "value, kind",
    [
        (lambda: "text", str),
        (lambda: 2**70, int),
        (lambda: [1, (2.5, None)], list),
        (lambda: (i for i in range(3)), Opaque),
        (lambda: torch.ones(1).expand(10**12), UnsentTensor),
        (lambda: torch.ones(2).to_sparse(), Opaque),
        (lambda: torch.ones(2, device="meta"), Opaque),
        (lambda: object(), Opaque),
        (lambda: "\ud800", str),
        (lambda: {1.5: 2}, Opaque),
        (lambda: float("nan"), float),
    ],
)
def test_whatever_is_returned_arrives_as_itself_or_as_its_name(value, kind):
    def answer():
        return value()

    outcome = play(answer, 1)
    assert outcome.failure is None
    assert isinstance(outcome.results[0].value, kind)


def test_what_ranks_return_has_a_limit_together():
    def answer():
        return ["x" * 99_000] * 42

    failure = play(answer, 7, answer_limit=0).failure
    assert failure.diagnosis is Diagnosis.OUTPUT_LIMIT
    assert "returns too much beside what the others do" in failure.message
    assert play(answer, 2, answer_limit=0).failure is None


def test_a_list_within_itself_arrives_cut():
    def answer():
        loop = []
        loop.append(loop)
        return loop

    assert play(answer, 1).failure is None


# Deadlocks. ----------------------------------------------------------------------


def test_head_to_head_sends_deadlock_at_once():
    def answer():
        x = torch.ones(3)
        dist.send(x, 1 - dist.get_rank())
        dist.recv(x, 1 - dist.get_rank())

    started = time.monotonic()
    failure = play(answer, 2).failure
    assert time.monotonic() - started < 5  # and not the 10 s of the time limit
    line = line_in(answer, "dist.send")
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert failure.cycle == (0, 1)
    assert failure.message == (
        f"rank 0 waits to send to rank 1 at line {line},"
        f" rank 1 waits to send to rank 0 at line {line}"
    )
    assert failure.detail == (
        "this can only work where sends are buffered, as MPI may do with small messages; with"
        " gloo, or with large messages, it hangs",
    )


def test_a_rank_that_returns_early():
    def answer():
        if dist.get_rank() == 2:
            return
        dist.recv(torch.empty(1), 2)

    failure = play(answer, 3).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert failure.message.endswith("; but rank 2 has already returned and will never send")


def test_a_wrong_tag():
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.ones(1), 1, tag=9)
        else:
            dist.recv(torch.empty(1), 0)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "rank 1 receives with tag 0" in failure.message
    assert "rank 0 sends with tag 9" in failure.message


def test_a_collective_that_not_all_ranks_call():
    def answer():
        if dist.get_rank() != 1:
            dist.all_reduce(torch.ones(1))

    failure = play(answer, 3, allowed=None).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    line = line_in(answer, "all_reduce")
    assert f"ranks 0 and 2 wait in all_reduce at line {line} for rank 1" in failure.message


def test_a_wait_names_the_line_of_the_wait_and_of_the_post():
    def answer():
        request = dist.irecv(torch.empty(1), 1 - dist.get_rank())
        request.wait()

    failure = play(answer, 2).failure
    assert f"line {line_in(answer, 'wait()')} (posted at line" in failure.message


def test_a_wildcard_that_nobody_can_serve():
    def answer():
        if dist.get_rank() == 0:
            dist.recv(torch.empty(1), None)

    failure = play(answer, 3).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "rank 0 waits to receive from any rank" in failure.message


def test_a_deadlock_of_some_does_not_wait_for_a_rank_that_runs():
    def answer():
        if dist.get_rank() == 2:
            time.sleep(60)
        dist.send(torch.ones(1), 1 - dist.get_rank())

    started = time.monotonic()
    failure = play(answer, 3, seconds=50).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert failure.cycle == (0, 1)
    assert time.monotonic() - started < 20


def test_an_error_elsewhere_is_the_cause_of_a_deadlock():
    def answer():
        if dist.get_rank() == 2:
            time.sleep(0.1)
            raise ValueError("late")
        dist.recv(torch.empty(1), 2 if dist.get_rank() else 1)

    failure = play(answer, 3).failure
    assert (failure.diagnosis, failure.rank) == (Diagnosis.EXCEPTION, 2)


# Messages that do not fit. --------------------------------------------------------


@pytest.mark.parametrize("sent, received", [(8, 4), (4, 8), (0, 3), (3, 0)])
def test_sizes_are_compared_before_the_transport_can_abort(sent, received):
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.ones(sent), 1)
        else:
            dist.recv(torch.empty(received), 0)

    for _ in range(3):
        failure = play(answer, 2).failure
        assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
        assert f"rank 0 sends {sent} elements" in failure.message
        assert f"rank 1 receives into {received}" in failure.message


def test_dtypes_are_compared():
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.ones(4, dtype=torch.float32), 1)
        else:
            dist.recv(torch.empty(4, dtype=torch.int32), 0)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.DTYPE_MISMATCH
    assert "sends float32" in failure.message
    assert "receives int32" in failure.message


def test_a_message_that_nobody_receives():
    def answer():
        if dist.get_rank() == 0:
            dist.isend(torch.ones(4), 1)

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.UNMATCHED_MESSAGE
    assert failure.rank == 0


@pytest.mark.parametrize("forgetful", [0, 1])
def test_a_request_that_nobody_waits_for(forgetful):
    def answer():
        rank = dist.get_rank()
        x = torch.ones(4)
        request = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
        if rank != forgetful:
            request.wait()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.UNWAITED_REQUEST
    assert failure.rank == forgetful


def test_a_buffer_changed_while_its_send_is_in_flight():
    def answer():
        x = torch.ones(4)
        if dist.get_rank() == 0:
            request = dist.isend(x, 1)
            x += 1
            request.wait()
        else:
            dist.recv(x, 0)

    failure = play(answer, 2).failure
    assert (failure.diagnosis, failure.rank) == (Diagnosis.BUFFER_RACE, 0)


def test_a_receive_into_a_buffer_that_is_being_sent():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        x = torch.ones(4)
        request = dist.isend(x, (rank + 1) % n)
        dist.recv(x, (rank - 1) % n)
        request.wait()

    for _ in range(3):
        failure = play(answer, 3).failure
        assert (failure.diagnosis, failure.rank) == (Diagnosis.BUFFER_RACE, 0)


def test_what_the_transport_refused_is_not_in_flight():
    def refused():
        x = torch.ones(3)
        with contextlib.suppress(RuntimeError):
            dist.all_reduce(x, dist.ReduceOp.BAND)  # of floats there is none
        dist.all_reduce(x)
        return x.tolist()

    outcome = play(refused, 2, allowed=None)
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == [[2.0] * 3] * 2


def test_parts_of_one_tensor_may_be_in_flight_together():
    def answer():
        x = torch.arange(4.0)
        other = 1 - dist.get_rank()
        requests = [dist.isend(x[:2], other), dist.isend(x[:2], other), dist.irecv(x[2:3], other)]
        dist.recv(x[3:], other)
        for request in requests:
            request.wait()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH  # and no race


def test_what_is_received_shows_when_it_is_waited_for_and_not_before():
    def answer():
        x = torch.zeros(1)
        if dist.get_rank() == 0:
            dist.send(torch.ones(1), 1)
            return None
        request = dist.irecv(x, 0)
        time.sleep(0.05)
        early = x.item()
        request.wait()
        return early, x.item()

    assert play(answer, 2).results[1].value == (0.0, 1.0)


# Collectives that do not fit. -----------------------------------------------------


def test_ranks_call_different_collectives():
    def answer():
        x = torch.ones(2)
        if dist.get_rank() == 0:
            dist.all_reduce(x)
        else:
            dist.broadcast(x, 0)

    failure = play(answer, 3, allowed=None).failure
    assert failure.diagnosis is Diagnosis.ORDER_MISMATCH
    assert "rank 0 calls all_reduce (SUM)" in failure.message
    assert "rank 1 calls broadcast (root 0)" in failure.message


def test_ranks_name_different_roots():
    def answer():
        dist.broadcast(torch.ones(2), dist.get_rank())

    assert play(answer, 2, allowed=None).failure.diagnosis is Diagnosis.ORDER_MISMATCH


def test_ranks_reduce_with_different_operations():
    def answer():
        op = dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.SUM
        dist.all_reduce(torch.ones(2), op)

    assert play(answer, 2, allowed=None).failure.diagnosis is Diagnosis.ORDER_MISMATCH


def test_ranks_reduce_tensors_of_different_sizes():
    def answer():
        dist.all_reduce(torch.ones(2 + dist.get_rank()))

    assert play(answer, 2, allowed=None).failure.diagnosis is Diagnosis.SIZE_MISMATCH


# Nothing is left. -----------------------------------------------------------------


def test_children_of_ranks_end_with_the_world():
    def answer():
        started = [subprocess.Popen(["sleep", "1000"]).pid]
        pid = os.fork()
        if pid == 0:  # a daemon: a session of its own, and no parent
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        os.waitpid(pid, 0)
        return started

    server = psutil.Process(default_launcher().pid)
    before = server.children(recursive=True)
    outcome = play(answer, 2)
    assert outcome.failure is None
    assert server.children(recursive=True) == before


READY = """
import json, sys
from headcount.server.fork_server import get_ready
kept = get_ready(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.exhaustive
def test_ranks_import_nothing_that_their_server_could_have_imported():
    # each would do it again: numpy.random alone takes as much of a processor as all else does
    def answer():
        return [name for name, module in sys.modules.items() if hasattr(module, "__file__")]

    ready = [sys.executable, "-c", READY, *ahead.modules]
    served = subprocess.run(ready, capture_output=True, check=True)
    imported = set(play(answer, 2).results[1].value) - set(json.loads(served.stdout))
    assert imported == set()


def test_ranks_meet_without_a_file(tmp_path, monkeypatch):
    def answer():
        return os.listdir(tmp_path)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert play(answer, 2).results[0].value == []


def test_descriptors_are_closed():
    def answer():
        pass

    play(answer, 3)
    before = psutil.Process().num_fds()
    for _ in range(5):
        play(answer, 3)
    assert psutil.Process().num_fds() == before


def test_a_rank_has_no_descriptors_but_its_own():
    def answer():
        links = []
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the one that lists them
                links.append(os.readlink(f"/proc/self/fd/{fd}"))
        return [link for link in links if link.startswith(("pipe:", "socket:"))]

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to look at descriptors")
    by_rank = [set(r.value) for r in play(answer, 2).results]
    assert not by_rank[0] & by_rank[1]


class _Overtaken(socket.socket):
    """Whatever there is to read, another thread has read it by now."""

    def recv(self, *arguments):
        socket.socket.recv(self, 1 << 16)
        return super().recv(*arguments)


class _Listener(Client):
    """A client of a server that is this test."""

    def __init__(self):
        super().__init__()
        self.connection = _Overtaken(fileno=self.connection.detach())
        self.their_end.sendall(b'{"ready": true}\n')

    def last_line(self):
        return ""

    def close(self):
        self.disconnect()
        self.their_end.close()


def test_a_thread_without_a_line_of_its_own_is_where_it_was_started():
    def answer():
        receiver = threading.Thread(target=dist.recv, args=(torch.zeros(1), 1 - dist.get_rank()))
        receiver.start()
        receiver.join()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert failure.waits[0].site.line == line_in(answer, "receiver.start()")


def test_a_thread_does_not_wait_for_what_another_has_read():
    listener = _Listener()
    thread = threading.Thread(target=listener.poll, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    listener.close()


class _Interrupted(socket.socket):
    """Who has read a large piece from it is interrupted once, before looking at the piece."""

    meanwhile = None

    def recv(self, *arguments):
        data = super().recv(*arguments)
        if len(data) > 10_000 and self.meanwhile:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return data


class _Interrupting:
    """A launcher of worlds that are interrupted while they read."""

    def __init__(self, launcher):
        self._launcher = launcher

    def launch(self, size):
        self.handle = self._launcher.launch(size)
        self.handle.controls = [_Interrupted(fileno=c.detach()) for c in self.handle.controls]
        return self.handle

    def __getattr__(self, name):
        return getattr(self._launcher, name)


def test_who_watches_a_world_keeps_out_of_what_another_reads():
    # as two threads do that judge at the same time, but in the order that is worst
    from headcount.core.packing import live_program
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    def answer(value):
        return torch.full((200_000,), value)

    def run(world, value):
        return world.run(Job("answer", ((value,),), allowed=None))

    launcher, program = default_launcher(), live_program(answer)
    interrupting, others = _Interrupting(launcher), []
    with (
        ProcessWorld(interrupting, 1, program) as one,
        ProcessWorld(launcher, 1, program) as other,
    ):
        interrupting.handle.controls[0].meanwhile = lambda: others.append(run(other, 2.0))
        first, (second,) = run(one, 1.0), others
    launcher.settle()
    for outcome, value in ((first, 1.0), (second, 2.0)):
        assert outcome.failure is None
        assert torch.equal(outcome.results[0].value, answer(value))


def _run_script(text, tmp_path, **environment):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
        cwd=tmp_path,
    )


SCRIPT = """
print("the script runs")
import torch, torch.distributed as dist
from headcount import run
from helper import double

def twice():
    print("in rank", dist.get_rank())
    return double(dist.get_rank())

print(list(run(twice, 2)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
def test_no_thread_of_a_rank_interrupts_another():
    def answer():
        dist.barrier()
        return [os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")]

    for result in play(answer, 2, allowed=None).results:
        # itself, the one that listens, and gloo's
        assert len(result.value) >= 3
        assert set(result.value) == {os.SCHED_BATCH}


def _refuse(code):
    """Have the kernel refuse the policy, to this process and to all that it starts."""
    import errno

    import pyseccomp

    refusing = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refusing.add_rule(pyseccomp.ERRNO(getattr(errno, code)), "sched_setscheduler")
    refusing.load()
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError as error:
        return errno.errorcode[error.errno]


REFUSED = f"""
import os
{inspect.getsource(_refuse)}
print(_refuse("EPERM"))

from headcount import run
import torch.distributed as dist

def number():
    dist.barrier()
    return dist.get_rank()

print(list(run(number, 2)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
@pytest.mark.exhaustive
def test_worlds_run_where_the_scheduling_policy_is_refused(tmp_path):
    done = _run_script(REFUSED, tmp_path)
    assert done.stderr == ""
    assert done.stdout == "EPERM\n[0, 1]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
@pytest.mark.parametrize("code", ["EPERM", "EINVAL", "ENOSYS"])
def test_the_scheduling_policy_may_be_refused_in_any_way(code):
    """By a container, an emulated kernel and a C library, in this order."""
    from headcount.rank import process_limits

    def answer():
        refused = _refuse(code)
        process_limits.let_others_finish()
        return refused

    outcome = play(answer, 1)
    assert outcome.failure is None
    assert outcome.results[0].value == code


@pytest.mark.exhaustive
def test_a_script_without_a_main_guard(tmp_path):
    (tmp_path / "helper.py").write_text("def double(x): return 2 * x\n")
    done = _run_script(SCRIPT, tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines.count("the script runs") == 1
    assert "[rank 1] in rank 1" in lines
    assert "[0, 2]" in lines


@pytest.mark.exhaustive
def test_ranks_can_be_spawned_and_that_is_said_once(tmp_path):
    (tmp_path / "helper.py").write_text("def double(x): return 2 * x\n")
    done = _run_script(SCRIPT, tmp_path, HEADCOUNT_START="spawn")
    assert "[0, 2]" in done.stdout
    assert done.stderr.count("ranks start as fresh interpreters") == 1


KILLED = """
import os, signal, time, torch.distributed as dist
from headcount import run
caller = os.getpid()
def hang():
    with open(f"pids.{dist.get_rank()}", "w") as file:
        print(os.getpid(), os.getppid(), file=file)
    dist.barrier()
    if dist.get_rank() == 0:
        os.kill(caller, signal.SIGKILL)
    while True: pass
run(hang, 3, seconds=100)
"""


@pytest.mark.exhaustive
def test_killing_the_caller_ends_its_server_and_ranks(tmp_path):
    done = _run_script(KILLED, tmp_path)
    assert done.returncode == -signal.SIGKILL
    pids = {int(pid) for file in tmp_path.glob("pids.*") for pid in file.read_text().split()}
    assert len(pids) == 4  # three ranks and their server
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(timeout=20)


THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "forked"), [("", True), ("import torch", False), (THREAD, False)]
)
@pytest.mark.exhaustive
def test_a_server_is_forked_from_a_process_that_has_done_nothing(before, forked, tmp_path):
    text = f"""
import sys
sys.argv[0] = "-m"  # as in a command: the import of headcount starts nothing
import psutil
{before}
from headcount.launch.launchers import default_launcher, fork_server_here
fork_server_here()
server = psutil.Process(default_launcher().pid)
print(server.cmdline() == psutil.Process().cmdline())
"""
    done = _run_script(text, tmp_path)
    assert (done.stdout, done.stderr) == (f"{forked}\n", "")


@pytest.mark.exhaustive
def test_a_dead_server_is_the_graders_fault_and_is_replaced():
    from headcount.core.errors import WorldError

    def answer():
        return dist.get_rank()

    server = default_launcher().pid

    def kill_the_server():
        os.kill(server, signal.SIGKILL)
        time.sleep(100)

    with pytest.raises(WorldError):
        play(kill_the_server, 1)
    assert [r.value for r in play(answer, 2).results] == [0, 1]


class _Trap:
    """Travels well, and cannot be unpacked."""

    def __reduce__(self):
        return _spring, ()


def _spring():
    raise ValueError("it will not be unpacked")


TRAP = _Trap()


@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_function_that_cannot_be_loaded_is_told_of_by_the_first_rank(size):
    def uses_it():
        return TRAP

    # whichever rank is heard of first, and whether or not the others have joined
    for _ in range(5):
        failure = play(uses_it, size).failure
        assert failure.diagnosis is Diagnosis.EXCEPTION
        assert failure.message.startswith("rank 0")
        assert "ValueError: it will not be unpacked" in failure.message


# The ranks of a job that has failed. ----------------------------------------------

_RAISING = b"""
import threading, time
from datetime import timedelta
import torch, torch.distributed as dist

CALLS = []

def answer(fault):
    rank, x = dist.get_rank(), torch.zeros(2)
    CALLS.append(fault)
    if not fault:
        dist.all_reduce(x)
        return len(CALLS)
    if fault == "early" and rank == 0:
        request = dist.isend(x, 1)
        x += 1
        request.wait()
    if fault in ("early", "unwaited") and rank == 1:
        dist.recv(x, 0)
    if fault == "early":
        return None
    if fault in ("unwaited", "unreceived") and rank == 0:
        dist.isend(x, 1)
    if fault == "expired":
        try:
            dist.irecv(x, 1 - rank).wait(timedelta(milliseconds=20))
        except RuntimeError:
            pass
    if fault == "running" and rank == 1:
        time.sleep(60)
    if fault == "thread":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    if fault == "memory":
        raise MemoryError
    raise ValueError(f"call {len(CALLS)}")
"""


def _raising_world(source=_RAISING, subgroups=False, size=2, smaller=()):
    from headcount.launch.process_world import ProcessWorld

    program = program_of(source, "answer")
    return ProcessWorld(default_launcher(), size, program, subgroups=subgroups, smaller=smaller)


def _faulty(world, fault, size=2):
    from headcount.launch.world import Job

    return world.run(Job("answer", ((fault,),) * size, allowed=None))


@pytest.mark.parametrize(
    "fault, diagnosis", [("raise", Diagnosis.EXCEPTION), ("early", Diagnosis.BUFFER_RACE)]
)
def test_ranks_that_have_all_ended_are_called_again_with_the_program_loaded_anew(fault, diagnosis):
    with _raising_world(size=3, smaller=[2]) as world:
        pids = set()
        for size in (2, 3):
            for earlier in (0, 2):
                failure = _faulty(world, fault, size).failure
                assert failure.diagnosis is diagnosis
                assert fault == "early" or failure.message.endswith(f"call {earlier + 1}")
                for calls in (1, 2):
                    outcome = _faulty(world, "", size)
                    assert [result.value for result in outcome.results] == [calls] * size
                pids.add(tuple(world.pids))
        assert len(pids) == 1


@pytest.mark.parametrize(
    "fault", ["unwaited", "unreceived", "expired", "running", "thread", "memory"]
)
def test_ranks_that_have_left_something_behind_are_not_called_again(fault):
    """A message, a connection that has seen a failure, a thread, or memory that is used up."""
    with _raising_world() as world:
        failure = _faulty(world, fault).failure
        memory = fault == "memory"
        assert failure.diagnosis is (Diagnosis.MEMORY_LIMIT if memory else Diagnosis.EXCEPTION)
        assert not world.usable


def test_a_message_that_a_backend_has_buffered_is_left_behind():
    """As MPI does: the send is complete, and the next call would receive it."""
    from headcount.core.events import Completed, Posted
    from headcount.trace.message_matcher import MessageMatcher

    matcher = MessageMatcher(2)
    what = ("send", 1, 0, "world", 2, 8, "float32", "", True, False, "f.py", 1, 1)
    matcher.take(0, Posted(0, *what))
    matcher.take(0, Completed(0, 2))
    matcher.end(0)
    matcher.end(1)
    assert not matcher.idle()


def test_ranks_that_may_have_made_groups_are_not_called_again():
    """Some may have made one more than others, and names would no longer agree."""
    with _raising_world(subgroups=True) as world:
        assert _faulty(world, "raise").failure.diagnosis is Diagnosis.EXCEPTION
        assert not world.usable


def test_ranks_that_pause_wait_for_each_other_and_learn_what_the_judge_tells():
    def answer():
        time.sleep(0.05 * dist.get_rank())
        return dist.group.WORLD.pause()

    pauses = (Pause(seconds=0.02, tells=lambda: [torch.arange(3)]),)
    outcome = play(answer, 3, pauses=pauses)
    assert outcome.failure is None
    assert [r.value[0].tolist() for r in outcome.results] == [[0, 1, 2]] * 3
    spans = [span for (span,) in outcome.trace.pauses]
    last = max(span.began for span in spans)
    assert all(span.ended - last >= 0.02e9 for span in spans)


def test_a_rank_that_never_pauses_does_not_hold_up_the_others_for_longer_than_it_lives():
    def answer():
        return None if dist.get_rank() else dist.group.WORLD.pause()

    outcome = play(answer, 2, pauses=(Pause(tells=lambda: 7),))
    assert [r.value for r in outcome.results] == [7, None]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what memory a process has")
@pytest.mark.parametrize("kept", [1 << 20, 32 << 20])
def test_a_rank_is_weighed_from_outside_whatever_it_says(kept):
    def answer(kept):
        bytes_of_its_own = bytearray(b"x" * kept)
        dist.group.WORLD.pause()
        return len(bytes_of_its_own)

    job = Job("answer", ((kept,),) * 2, pauses=(Pause(weighs=True),))
    with ProcessWorld(default_launcher(), 2, live_program(answer), weighed=True) as world:
        outcome = world.run(job)
    for (span,) in outcome.trace.pauses:
        assert span.grown == pytest.approx(kept, abs=6 << 20)
