"""Which launcher this process starts its ranks with."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import psutil

from grader.core.errors import RequestError, WorldError
from grader.core.resource_limits import DEFAULTS
from grader.launch.cpp_build import CppBuilder
from grader.launch.fork_server_client import ForkServer, start
from grader.launch.kernel_counters import Counts
from grader.launch.process_group_handle import (
    ChannelEnds,
    Launcher,
    ProcessGroupHandle,
    RankEnvironment,
    living,
)
from grader.launch.sandbox_pool import Sandbox, SandboxPool
from grader.rank.transports.base import NAMES

__all__ = [
    "Spawner",
    "backends",
    "call_seconds",
    "default_launcher",
    "discard_launcher",
    "launcher_on",
    "new_sandbox",
    "warm_up",
]


# Ranks as fresh interpreters: seconds instead of milliseconds, and safe anywhere. ----


class Spawner:
    """Starts every rank as a fresh interpreter: slow, and safe anywhere."""

    def __init__(self) -> None:
        self._processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._names = map(str, itertools.count(1))
        self._workshop: CppBuilder | None = None

    @property
    def setting(self) -> RankEnvironment:
        """As in this process."""
        return RankEnvironment.here()

    @property
    def largest(self) -> int | None:
        """No bound."""
        return None

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start the ranks of a world."""
        ends, name = ChannelEnds.make(size), next(self._names)
        processes: list[subprocess.Popen[bytes]] = []
        self._processes[name] = processes
        handle = ProcessGroupHandle(ends.controls, ends.outputs, ends.faults, [], self, name)
        try:
            for rank in range(size):
                fds = ends.theirs[3 * rank : 3 * rank + 3]
                processes.append(start("grader.server.process", fds, subprocess.DEVNULL))  # type: ignore[arg-type]
                handle.pids.append(processes[-1].pid)
        except OSError as error:
            handle.close()
            raise WorldError(f"a rank could not be started: {error}") from error
        finally:
            ends.close_theirs()
        return handle

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """Nothing tells; the supervisor polls."""
        return None

    def poll(self, handle: ProcessGroupHandle, patience: float = 0.0) -> None:
        """Ask every process whether it has ended."""
        if patience:
            time.sleep(patience)
        for rank, process in enumerate(self._processes.get(handle.name, [])):
            status = process.poll()
            if status is not None:
                handle.statuses[rank] = status

    def signal(self, handle: ProcessGroupHandle, number: int) -> None:
        """Send a signal to every rank of a world that still runs."""
        for process in self._processes.get(handle.name, []):
            # does nothing to one that has been reaped
            process.send_signal(number)

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """The ranks of a world that still run."""
        return living(handle.pids)

    def kill(self, handle: ProcessGroupHandle) -> None:
        """Kill every process group of a world."""
        self._end(handle.name)

    def _end(self, name: str) -> None:
        processes = self._processes.pop(name, [])
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()

    def counts(self) -> Counts | None:
        """Nothing: others use the same network."""
        return None

    def workshop(self) -> CppBuilder:
        """Compiles what its ranks are to run."""
        if self._workshop is None:
            self._workshop = CppBuilder()
        return self._workshop

    def settle(self) -> None:
        """Nothing to wait for: :meth:`kill` has."""

    def close(self) -> None:
        """End every world."""
        for name in list(self._processes):
            self._end(name)
        if self._workshop is not None:
            self._workshop.close()
            self._workshop = None


# Which launcher this process has. -------------------------------------------------

_current: ForkServer | Spawner | None = None
_pool: SandboxPool | None = None


def _cannot_fork() -> str:
    """Why this machine cannot fork ranks; empty if it can."""
    if os.environ.get("GRADER_START") == "spawn":
        return "GRADER_START=spawn asks for it"
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        return "this platform cannot fork"
    return ""


def warm_up() -> None:
    """Start the fork server in the background, if there is to be one."""
    global _current
    if _current is None and not _cannot_fork():
        _current = ForkServer()


def discard_launcher() -> None:
    """End this process's launcher and all its worlds; a new one starts."""
    global _current
    if _current is not None:
        _current.close()
        _current = None
    warm_up()


def default_launcher() -> ForkServer | Spawner:
    """This process's launcher, started if it is not running.

    Falls back to spawning, and says so once, where forking is unsafe: the
    platform cannot, or something has given the server threads or CUDA.
    """
    global _current
    if isinstance(_current, ForkServer) and not _current.usable:
        _current = None
    warm_up()
    reason = _cannot_fork()
    if isinstance(_current, ForkServer):
        reason = " and ".join(_current.dangers())
        if not reason:
            return _current
        _current.close()
        reason = f"the fork server has {reason} before it forks"
    if not isinstance(_current, Spawner):
        warnings.warn(
            f"ranks start as fresh interpreters, which takes seconds: {reason}", stacklevel=2
        )
        _current = Spawner()
    return _current


def launcher_on(backend: str) -> Launcher:
    """What starts ranks that speak a backend.

    Raises:
        RequestError: it is not to be had here, or there is none of this name; the message
            says the mend.
    """
    if backend not in NAMES:
        raise RequestError(f"the backends are {', '.join(NAMES)}, and {backend!r} is none of them")
    if backend == "mpi":
        from grader.launch.mpiexec import MpiLauncher

        return MpiLauncher(default_launcher())
    if backend == "nccl":
        from grader.launch.nccl import nccl_launcher

        return nccl_launcher(default_launcher())
    return default_launcher()


def backends() -> dict[str, str]:
    """Which of ``gloo``, ``mpi`` and ``nccl`` can be used here.

    Returns:
        By name: why it cannot be used, in one line; empty if it can.
    """
    from grader.launch import mpiexec, nccl

    return {"gloo": "", "mpi": mpiexec.missing(), "nccl": nccl.missing()}


def call_seconds(backend: str) -> float:
    """Wall clock that one call may take; a GPU makes its connections when they are first used."""
    return DEFAULTS.gpu_call if backend == "nccl" else DEFAULTS.call


def new_sandbox(hidden: Sequence[Path] = ()) -> Sandbox:
    """A sandbox that nothing has run in; the first one of a process takes seconds.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
        WorldError: it cannot be started.
    """
    global _pool
    if _pool is not None and not (_pool.usable and _pool.hidden == tuple(hidden)):
        _pool.close()
        _pool = None
    if _pool is None:
        _pool = SandboxPool(hidden)
    return _pool.sandbox()
