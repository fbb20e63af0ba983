"""The processes that a test has started."""

from __future__ import annotations

import contextlib
import multiprocessing.process
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

#: In the command line of a fork server.
_SERVER = "headcount.server.fork_server"


def heed_interrupts() -> None:
    """Let this process be interrupted, and what it starts.

    A shell without job control starts what is to run in its background with SIGINT ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def descendants() -> list[psutil.Process]:
    """All live descendants of this process.

    psutil looks at every process of the machine to find them.  That takes milliseconds, and
    is done twice for each of thousands of tests; Linux can be asked for children alone.
    """
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return psutil.Process().children(recursive=True)
    found, coming = [], [os.getpid()]
    while coming:
        pid = coming.pop()
        # a process may end meanwhile, and a thread of it
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            for thread in os.listdir(f"/proc/{pid}/task"):
                children = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
                for child in map(int, children):
                    found.append(psutil.Process(child))
                    coming.append(child)
    return found


def our_processes(
    is_idle: Callable[[psutil.Process, str], bool] = lambda process, command: False,
) -> list[str]:
    """Return the command lines of live descendants of this process, idle helpers aside.

    Args:
        is_idle: whether a process, whose command line is given, is a helper besides the engine's.
    """
    found = []
    for child in descendants():
        try:
            command = " ".join(child.cmdline())
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(f"zombie {child.pid}")
            elif _SERVER in command and child.cmdline() != psutil.Process(child.ppid()).cmdline():
                continue  # ours, or a notebook kernel's; ranks are forks, with its command line
            elif is_idle(child, command):
                continue
            elif "multiprocessing.resource_tracker" in command:
                continue  # ends with the process that it belongs to
            else:
                found.append(f"{child.pid} {command}")
        except psutil.NoSuchProcess:
            continue
    return found


def refuse_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if it starts a process, in any of the ways that Python has."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a test in a folder `unit` starts a process; it belongs in another folder")

    for owner, name in (
        *((os, "fork"), (os, "posix_spawn"), (os, "posix_spawnp"), (os, "system")),
        *((subprocess.Popen, "__init__"), (multiprocessing.process.BaseProcess, "start")),
    ):
        monkeypatch.setattr(owner, name, refuse)
