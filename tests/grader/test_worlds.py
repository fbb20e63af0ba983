"""The worlds of a script that calls ``check``, and of the command ``check``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest


def _run_script(text, tmp_path, **environment):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
        cwd=tmp_path,
    )


SCRIPT = """
print("the script runs")
import torch, torch.distributed as dist
from grader import check, run
from helper import double

def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)

def twice():
    print("in rank", dist.get_rank())
    return double(dist.get_rank())

print(list(run(twice, 2)))
check(broadcast, world_sizes=[2])
"""


@pytest.mark.exhaustive
def test_a_script_without_a_main_guard(tmp_path):
    (tmp_path / "helper.py").write_text("def double(x): return 2 * x\n")
    done = _run_script(SCRIPT, tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines.count("the script runs") == 1
    assert "[rank 1] in rank 1" in lines
    assert "[0, 2]" in lines
    assert "✓ broadcast" in done.stdout


@pytest.mark.exhaustive
def test_ranks_can_be_spawned_and_that_is_said_once(tmp_path):
    (tmp_path / "helper.py").write_text("def double(x): return 2 * x\n")
    done = _run_script(SCRIPT, tmp_path, HEADCOUNT_START="spawn")
    assert "[0, 2]" in done.stdout
    assert "✓ broadcast" in done.stdout
    assert done.stderr.count("ranks start as fresh interpreters") == 1


#: Answers that say where they run, and that end the command which judges them.
ANSWERS = """
import json, os, psutil, signal, sys, time, torch

def neighbours():
    server = psutil.Process(os.getppid())
    with open(f"rank.{os.getpid()}", "w") as file:
        json.dump([server.pid, server.cmdline(), sys.argv, torch.get_num_threads(),
                   os.environ["OMP_NUM_THREADS"], os.environ["PYTHONSAFEPATH"]], file)
    if "kill.me" in os.listdir():
        os.kill(server.ppid(), signal.SIGKILL)
        time.sleep(100)
    return (0, 0)
"""


def _check_answers(folder):
    (folder / "answers.py").write_text(ANSWERS)
    command = [sys.executable, "-m", "grader", "check", "answers.py", "--world-sizes", "1"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=100)


@pytest.mark.exhaustive
def test_a_command_forks_its_server_from_itself(tmp_path):
    done = _check_answers(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    files = list(tmp_path.glob("rank.*"))
    assert files
    for file in files:
        _, command, arguments, threads, omp, safe = json.loads(file.read_text())
        assert command[-4:] == ["check", "answers.py", "--world-sizes", "1"]
        assert "answers.py" not in arguments
        assert (threads, omp, safe) == (1, "1", "1")


@pytest.mark.exhaustive
def test_killing_a_command_ends_the_server_that_it_has_forked(tmp_path):
    (tmp_path / "kill.me").touch()
    assert _check_answers(tmp_path).returncode == -signal.SIGKILL
    (file,) = tmp_path.glob("rank.*")
    server, *_ = json.loads(file.read_text())
    for pid in (server, int(file.suffix[1:])):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(timeout=20)
