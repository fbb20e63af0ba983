"""What a whole submission may use: the watchdog over a sandbox's processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from grader.classroom import grading
from grader.classroom.grading import ResourceWatchdog, descendants, own_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading in a sandbox needs Linux")

MB = 1 << 20

#: A process with 200 MB that forks five others; on a line of input each writes to all of its pages.
PARENT = """
import os, sys
held = bytearray(200 << 20)
held[::4096] = bytes(1 for _ in range(0, len(held), 4096))
go, writer = os.pipe()
done, told = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        os.close(writer)
        os.read(go, 1)
        held[::4096] = bytes(2 for _ in range(0, len(held), 4096))
        os.write(told, b"x")
        os.read(go, 1)
        os._exit(0)
print(flush=True)
sys.stdin.readline()
os.write(writer, bytes(5))
missing = 5
while missing:
    missing -= len(os.read(done, missing))
print(flush=True)
sys.stdin.readline()
"""

#: It starts that process, and stands for the one that a sandbox begins with.
TOP = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PARENT!r}])"


@pytest.fixture
def top():
    process = subprocess.Popen(
        [sys.executable, "-c", TOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "\n"
    yield process
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.communicate()


def test_what_forked_processes_share_counts_once_until_they_write_to_it(top):
    watchdog = ResourceWatchdog(top.pid, 600 * MB, 100)
    watchdog.close()
    children = psutil.Process(top.pid).children(recursive=True)
    assert sum(child.memory_info().rss for child in children) > 1200 * MB
    assert 200 * MB < watchdog.resident() < 400 * MB
    assert watchdog.reason is None
    top.stdin.write("\n")
    top.stdin.flush()
    assert top.stdout.readline() == "\n"
    # what they have written to is theirs alone, which one of the next ten looks finds out
    assert max(watchdog.resident() for _ in range(10)) > 1200 * MB


def test_the_time_that_a_message_names_is_the_limit_and_not_what_was_left_of_it(top):
    watchdog = ResourceWatchdog(top.pid, 600 * MB, 40, spent=40)
    (thread,) = (one for one in threading.enumerate() if one.name == "resource-watchdog")
    thread.join()
    assert watchdog.reason[1].startswith("the submission took over 40 s in all")


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_found_whether_or_not_the_kernel_lists_children(top, monkeypatch, listed):
    if listed and not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this kernel lists no children")
    monkeypatch.setattr(Path, "exists", Mock(return_value=listed))
    process = psutil.Process(top.pid)
    found = descendants(process)
    # the process that holds the memory, and the five that it has forked
    assert len(found) == 6
    assert {one.pid for one in found} == {one.pid for one in process.children(recursive=True)}


@pytest.mark.parametrize("listed", [True, False])
def test_a_process_that_is_gone_has_no_descendants(monkeypatch, listed):
    process = subprocess.Popen([sys.executable, "-c", ""])
    seen = psutil.Process(process.pid)
    process.wait()
    monkeypatch.setattr(Path, "exists", Mock(return_value=listed))
    with pytest.raises(psutil.NoSuchProcess):
        descendants(seen)


def test_the_kernel_is_not_asked_at_every_look(top, monkeypatch):
    watchdog = ResourceWatchdog(top.pid, 600 * MB, 100)
    watchdog.close()
    asked = Mock(wraps=own_memory)
    monkeypatch.setattr(grading, "own_memory", asked)
    for _ in range(10):
        assert watchdog.resident() < 400 * MB
    processes = psutil.Process(top.pid).children(recursive=True)
    assert len(processes) <= asked.call_count <= 2 * len(processes)


def test_where_the_kernel_does_not_say_all_memory_counts_as_its_own(top, monkeypatch):
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=PermissionError))
    for child in psutil.Process(top.pid).children(recursive=True):
        memory = child.memory_info()
        assert own_memory(child) == memory.rss - memory.shared


def test_a_process_that_has_ended_holds_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    seen = psutil.Process(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert own_memory(seen) == 0
    process.wait()
    with pytest.raises(psutil.NoSuchProcess):
        own_memory(seen)
