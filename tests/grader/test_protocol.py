"""The judge never waits for who it talks to: every conversation is left off in every state."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import islice

import pytest

from grader.classroom.grading import parse
from grader.sandbox import cpp_build
from grader.sandbox import sandboxes as sandbox
from grader.sandbox.cpp_build import CppBuilder, CppSource
from grader.submission.submission import live_program
from headcount.core.errors import UnreadableFile, WorldError
from headcount.core.verdict import Diagnosis
from headcount.core.wire import Ready, Resolved, Resumed, read_frames
from headcount.launch import launchers
from headcount.launch.frame_channel import BACKLOG, FrameChannel
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate
from support.scripted import STOPS, Scripted, done_reading, frames, output, silence, stopped

#: The time limit of each conversation, and what the judge may need beyond it on a busy machine;
#: a judge that waits does so for ever, or until the limit of a whole submission.
LIMIT, BEYOND = 0.2, 8.0


def answer():
    return 1


PROGRAM = live_program(answer)


@contextlib.contextmanager
def in_time():
    """What happens here ends soon after the limit."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < LIMIT + BEYOND


def each(*stops):
    return pytest.mark.parametrize("stop", stops, ids=lambda stop: stop.__name__)


@each(*STOPS)
@pytest.mark.parametrize("ranks", [{0}, {0, 1, 2}], ids=["one rank", "all ranks"])
@pytest.mark.parametrize("part", ["Load", "RunCall"])
def test_ranks_that_leave_off_while_they_load_or_work(part, ranks, stop):
    world = Scripted(**{part: _of(ranks, stopped(stop))})
    with in_time(), ProcessWorld(world, 3, PROGRAM, loading=LIMIT) as ranks_of_three:
        failure = ranks_of_three.run(Job("answer", ((),) * 3, seconds=LIMIT)).failure
    assert failure is not None
    # a rank that goes on after its end is the first that the judge hears of
    assert failure.diagnosis in {
        Diagnosis.TIMEOUT,
        Diagnosis.EXITED,
        Diagnosis.CRASHED,
        Diagnosis.TAMPERING,
        Diagnosis.OUTPUT_LIMIT,
    }


def _of(ranks, part):
    """A part that only some ranks play; the others end."""

    def chosen(frame, process):
        if process.rank in ranks:
            part(frame, process)
        else:
            process.close()

    return chosen


# those that say so again and again have joined
@each(*(stop for stop in STOPS if stop is not frames))
def test_ranks_that_leave_off_before_a_line_of_the_students_has_run(stop):
    with (
        in_time(),
        ProcessWorld(Scripted(Setup=stopped(stop)), 3, PROGRAM, loading=LIMIT) as world,
        pytest.raises(WorldError, match="the ranks cannot form a group: "),
    ):
        world.run(Job("answer", ((),) * 3, seconds=LIMIT))


@each(*STOPS)
def test_simulated_ranks_that_leave_off(stop):
    with in_time():
        job = Job("answer", ((),) * 3, seconds=LIMIT)
        found = simulate(Scripted(Simulate=stopped(stop)), PROGRAM, job, Flat())
    assert found.failure is not None


@each(*STOPS)
def test_parsers_that_leave_off(stop):
    with in_time(), pytest.raises(UnreadableFile, match="cannot be read"):
        parse(Scripted(Perform=stopped(stop)), b"x = 1", "answer.py", [], LIMIT)


@each(silence, done_reading, output)
def test_ranks_that_do_not_read_a_large_call(stop):
    """The call is larger than what a socket takes."""
    large = "x" * 50_000
    job = Job("answer", ((tuple([large] * 20),),) * 3, seconds=LIMIT)
    world = Scripted(Load=lambda frame, process: _ready_and(stop, process))
    with in_time(), ProcessWorld(world, 3, PROGRAM, loading=LIMIT) as ranks:
        assert ranks.run(job).failure is not None


def _ready_and(stop, process):
    process.say(Ready())
    stop(process)
    process.ended.wait(60)


# Compilers. -------------------------------------------------------------------------

#: Programs in the place of the one that runs the compiler, by how they leave off.
COMPILERS = {
    "silence": "time.sleep(60)",
    "half a library": "os.write(1, b'half'); time.sleep(60)",
    "no input": "os.close(0); time.sleep(60)",
    "no output": "os.close(1); os.close(2); time.sleep(60)",
    "words without end": "\nwhile True: os.write(2, b'x' * 1000)",
    "a library without end": "\nwhile True: os.write(1, b'x' * 100_000)",
    "a child that lives on": "os.fork() and os._exit(0) or os.setsid() or time.sleep(3)",
}


@pytest.mark.skipif(cpp_build.compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("program", COMPILERS.values(), ids=COMPILERS)
def test_compilers_that_leave_off(program, tmp_path, monkeypatch):
    script = tmp_path / "compiler.py"
    script.write_text(f"import os, time\n{program}\n")
    monkeypatch.setattr(cpp_build, "PROGRAM", str(script))
    # a second is what a new interpreter takes on a busy machine
    monkeypatch.setattr(cpp_build, "DEFAULTS", replace(cpp_build.DEFAULTS, compiling=1.0))
    monkeypatch.setattr(cpp_build, "precompiled", lambda enough: None)
    builder = CppBuilder()
    with in_time():
        built = builder.build(CppSource("F", "x" * 500_000, "f", 1))
    builder.close()
    assert built.late
    assert built.complaint == "the compiler is not done after 1 s"


# Servers of sandboxes. ----------------------------------------------------------------


class _Server(launchers.Client):
    """A client of a fork server that says what it is told to, and then nothing."""

    def __init__(self, said=b""):
        super().__init__()
        self.their_end.sendall(said)

    def last_line(self):
        return "nothing"

    def close(self):
        self.disconnect()
        self.their_end.close()


@pytest.mark.parametrize("said", [b"", b'{"ready": 1, "thr', b'{"ready": 1, "threads": false}\n'])
def test_a_fork_server_that_leaves_off(said, monkeypatch):
    monkeypatch.setattr(launchers, "KILL_PATIENCE", LIMIT)
    server = _Server(said)
    with (
        in_time(),
        ProcessWorld(server, 2, PROGRAM, loading=LIMIT) as world,
        pytest.raises(WorldError, match=r"cannot form a group: no end after 0\.2 s"),
    ):
        world.run(Job("answer", ((),) * 2, seconds=LIMIT))
    server.close()


def test_a_fork_server_that_does_not_read(monkeypatch):
    monkeypatch.setattr(launchers, "DEAF", 1)
    server = _Server()
    with in_time(), pytest.raises(WorldError, match="does not answer"):
        _launch_without_end(server)
    server.close()


def _launch_without_end(server):
    while True:
        handle = server.launch(1)
        handle.closed = True  # it is not asked to end these ranks, which it has not started
        for control in handle.controls:
            control.close()
        for fd in (*handle.outputs, *handle.faults):
            os.close(fd)


class _Pool(sandbox.SandboxPool):
    """A pool of sandboxes whose process is a socket of this test's."""

    def __init__(self, *said):
        self.hidden, self._ready, self._adopter = (), False, None
        self.connection, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for message in said:
            self.theirs.send(message)

    def last_line(self):
        return "it says nothing"


@pytest.mark.skipif(sys.platform != "linux", reason="sandboxes need Linux")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([], "sandboxes took over"),
        ([b"ready\n"], "a sandbox took over"),
    ],
    ids=["before it is ready", "before a sandbox is there"],
)
def test_a_server_of_sandboxes_that_leaves_off(said, message, monkeypatch):
    monkeypatch.setattr(sandbox, "HELPER_START", LIMIT)
    pool = _Pool(*said)
    with pool.theirs, pool.connection, in_time(), pytest.raises(WorldError, match=message):
        pool.sandbox()


def test_the_scripts_would_show_a_judge_that_waits():
    """A read that blocks skips the urgent byte, and waits."""
    code = (
        "import socket\n"
        "ours, theirs = socket.socketpair()\n"
        "theirs.send(b'!', socket.MSG_OOB)\n"
        "ours.recv(1)\n"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=2, check=False)


# What waits for a process that does not read. -------------------------------------------


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield FrameChannel(ours), theirs


def test_a_large_message_may_have_others_behind_it(ends):
    channel, theirs = ends
    sent = [Resumed(b"x" * (2 * BACKLOG)), *(Resolved(op, 0) for op in range(100))]
    for message in sent:
        channel.send(message)
    reader = threading.Thread(target=lambda: read.extend(islice(read_frames(theirs), len(sent))))
    read = []
    reader.start()
    while channel.events & selectors.EVENT_WRITE:
        channel.flush()
    reader.join()
    assert read == sent
    assert not channel.deaf


def test_who_does_not_read_is_told_no_more_after_so_much(ends):
    channel, _ = ends
    message = Resumed(b"x" * (BACKLOG // 4))
    for _ in range(4):
        channel.send(message)
    assert not channel.deaf
    channel.send(message)
    assert channel.deaf
    assert channel.events == selectors.EVENT_READ
