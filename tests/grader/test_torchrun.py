"""``torchrun`` of notebooks: plain processes, started as in a terminal."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from grader import torchrun
from headcount.core.errors import RequestError

#: The ranks print in turn, the last one first; then one of them fails.
SCRIPT = """
import os
import torch.distributed as dist

dist.init_process_group("gloo")
if os.environ["RANK"] == "0":
    dist.barrier()
print("I am rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)
if os.environ["RANK"] == "1":
    dist.barrier()
dist.barrier()
dist.destroy_process_group()
if os.environ["RANK"] == "1":
    raise ValueError("only here")
"""


def test_lines_are_in_rank_order_and_a_failure_is_shown(capsys):
    torchrun(SCRIPT, 2)
    command, first, second, *errors = capsys.readouterr().out.splitlines()
    assert command == "$ torchrun --standalone --nproc_per_node=2 script.py"
    assert first == "[rank 0] I am rank 0 of 2"
    assert second == "[rank 1] I am rank 1 of 2"
    assert errors[-1] == "[rank 1] ValueError: only here"


def test_what_is_no_script_is_told(capsys):
    with pytest.raises(RequestError, match="takes the text of a script, not a function"):
        torchrun(test_what_is_no_script_is_told, 2)
    assert capsys.readouterr().out == ""


def interrupted(script: str, size: int, folder: Path) -> None:
    """Interrupt ``torchrun`` as soon as that many processes have left their number in a folder.

    Fails unless all of them end.
    """
    found = []

    def interrupt():
        until = time.monotonic() + 90
        while time.monotonic() < until and len(found) < size:
            texts = [path.read_text() for path in folder.iterdir()]
            found[:] = [psutil.Process(int(text)) for text in texts if text]
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        torchrun(script, size)
    watcher.join()
    assert len(found) == size
    _, alive = psutil.wait_procs(found, timeout=60)
    for process in alive:
        process.kill()
    assert not alive


def test_an_interrupted_launch_leaves_no_process(tmp_path):
    script = f"""
import os, pathlib, signal
pathlib.Path({str(tmp_path)!r}, os.environ["RANK"]).write_text(str(os.getpid()))
signal.pause()
"""
    interrupted(script, 2, tmp_path)


def test_a_launcher_that_forgets_a_rank_leaves_no_process(tmp_path, monkeypatch):
    """As torch's does if it is interrupted while it starts the next one."""
    launcher, pids = tmp_path / "launcher", tmp_path / "pids"
    pids.mkdir()
    launcher.write_text(f"#!/bin/sh\nsetsid sleep 1000 2>/dev/null & echo $! > {pids}/0\nwait\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(launcher))
    interrupted("", 1, pids)
