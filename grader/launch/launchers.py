"""Which launcher this process starts its ranks with."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Sequence
from pathlib import Path

from grader.core.errors import RequestError
from grader.launch.fork_server_client import ForkServer
from grader.launch.process_group_handle import Launcher
from grader.launch.sandbox_pool import Nursery, Sandbox
from grader.launch.spawner import Spawner
from grader.rank.transports.base import NAMES

__all__ = [
    "backends",
    "call_seconds",
    "default_launcher",
    "discard_launcher",
    "launcher_on",
    "new_sandbox",
    "warm_up",
]

_current: ForkServer | Spawner | None = None
_nursery: Nursery | None = None


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
    return 30.0 if backend == "nccl" else 5.0


def new_sandbox(hidden: Sequence[Path] = ()) -> Sandbox:
    """A sandbox that nothing has run in; the first one of a process takes seconds.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
        WorldError: it cannot be started.
    """
    global _nursery
    if _nursery is not None and not (_nursery.usable and _nursery.hidden == tuple(hidden)):
        _nursery.close()
        _nursery = None
    if _nursery is None:
        _nursery = Nursery(hidden)
    return _nursery.sandbox()
