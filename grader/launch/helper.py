"""Processes of ours that serve this one over a socket, and end with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

__all__ = ["HELPER_START", "KILL_PATIENCE", "Helper", "start"]

#: Seconds in which a helper must have imported torch, on the slowest machine.
HELPER_START = 120.0

#: Seconds in which killed processes must be gone.
KILL_PATIENCE = 10.0


class Helper:
    """A process that belongs to this one, and not to a child that this one forks.

    Args:
        module: what it runs.
        theirs: its end of the socket; closed here.
        prefix: a command to run it under.
    """

    def __init__(self, module: str, theirs: socket.socket, prefix: Sequence[str] = ()) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with theirs:
            self._process = start(module, [theirs.fileno()], self._errors, prefix)
        self._owner = os.getpid()

    @property
    def pid(self) -> int:
        """Of the process, or of the command that it runs under."""
        return self._process.pid

    @property
    def ours(self) -> bool:
        """Whether this is the process that has started it."""
        return self._owner == os.getpid()

    @property
    def usable(self) -> bool:
        """Whether it runs, and is ours."""
        return self.ours and self._process.poll() is None

    def last_words(self) -> str:
        """The last line on its standard error, or how it has just ended; empty if it goes on."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
        try:
            return f"exit status {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""

    def end(self) -> None:
        """Wait for it, now that nobody is at the other end of its socket; but not for ever."""
        try:
            self._process.wait(KILL_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def _environment() -> dict[str, str]:
    """The environment of servers and ranks: loopback only, one thread, quiet."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }


def start(
    module: str,
    fds: Sequence[int],
    errors: IO[bytes],
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Run a module of ours in a new interpreter, in a session of its own.

    Args:
        module: what to run.
        fds: descriptors to leave open; it is told their numbers.
        errors: where its standard error goes.
        prefix: a command to run it under, such as a sandbox.
    """
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", module, *map(str, fds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=fds,
        env=_environment(),
        # away from the current folder, where a student's random.py may lie
        cwd=Path(__file__).resolve().parent.parent.parent,
        # Ctrl-C in a terminal, and Stop in Jupyter, go to the whole group
        start_new_session=True,
    )
