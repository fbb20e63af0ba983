"""Sandboxes, forked from one process that has imported torch."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from grader.core.errors import RequestError, WorldError
from grader.launch.cpp_build import CppBuilder
from grader.launch.fork_server_client import HELPER_START, KILL_PATIENCE, Client, Helper
from grader.launch.kernel_counters import Counts, read_counts
from grader.launch.process_group_handle import ProcessGroupHandle, RankEnvironment, readable
from grader.launch.sandbox import BUILT, compiling_command, sandbox_command

__all__ = ["SandboxPool", "Sandbox"]

#: Users of nobody in particular; systemd's range for services of a moment.
_USERS = range(61184, 65520)

_CREDENTIALS = struct.Struct("=iII")


class SandboxPool:
    """Makes sandboxes; it runs nobody's code itself.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
    """

    @staticmethod
    def rehearse() -> None:
        """Make an empty sandbox, in a fraction of a second, to see whether it can be done.

        Raises:
            RequestError: there can be no sandbox here; the message says why.
        """
        command = [*sandbox_command(), sys.executable, "-m", "grader.server.sandbox_server"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise RequestError(f"the sandbox does not start here: {why[0]}")

    def __init__(self, hidden: Sequence[Path] = ()) -> None:
        self.hidden = tuple(hidden)
        self._built = tempfile.TemporaryDirectory(prefix="grader-")
        self.built = Path(self._built.name)
        # inside, other users read what they are told the name of; nobody sees whose there are
        self.built.chmod(0o711)
        command = sandbox_command(hidden, self.built)
        self._socket, theirs = socket.socketpair()
        self._helper = Helper("grader.server.sandbox_server", theirs, command)
        # limits on processes are a user's, and no stranger's must be another's; those that
        # grade on this machine now have different process ids
        self._user = _USERS[self.pid % len(_USERS)] if os.geteuid() == 0 else None
        self._ready = False
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether it runs, and belongs to this process and not to its parent."""
        return self._helper.usable

    @property
    def pid(self) -> int:
        """Of the command that it runs under."""
        return self._helper.pid

    def last_words(self) -> str:
        """What it, or the last sandbox that failed, complained of."""
        return self._helper.last_words() or "it says nothing"

    def sandbox(self) -> Sandbox:
        """A new one; one at a time, or they share a user and its limits.

        Raises:
            WorldError: it cannot be had.
        """
        self._wait()
        return Sandbox(self, self._user)

    def _wait(self) -> None:
        if self._ready:
            return
        self._socket.settimeout(HELPER_START)
        try:
            self._ready = bool(self._socket.recv(16))
        except TimeoutError:
            raise WorldError(f"sandboxes took over {HELPER_START:.0f} s to start") from None
        if not self._ready:
            raise WorldError(f"no sandbox can be started: {self.last_words()}")

    def ask(self, user: int | None, passed: int) -> None:
        """Have a sandbox forked.

        Args:
            user: to become, inside; ``None`` if there is only one to be.
            passed: the descriptor on which it is to be spoken with.

        Raises:
            WorldError: nobody is there to do it.
        """
        try:
            socket.send_fds(self._socket, [json.dumps({"user": user}).encode()], [passed])
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}; {self.last_words()}") from error

    def close(self) -> None:
        """End it, and with it all its sandboxes."""
        if not self._helper.ours:
            return
        atexit.unregister(self.close)
        self._socket.close()
        self._helper.end()
        self._built.cleanup()


class Sandbox(Client):
    """A fork server in a sandbox of its own; made by :meth:`SandboxPool.sandbox`."""

    def __init__(self, pool: SandboxPool, user: int | None) -> None:
        super().__init__(RankEnvironment(path=[], folder="/", sealed=True))
        self._pool = pool
        self._user = user
        # the kernel says who writes, as this process would name it
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with self._theirs as theirs:
                pool.ask(user, theirs.fileno())
            self.pid = self._introduction()
            self._pidfds = self._watched()
        except WorldError:
            self._socket.close()
            raise

    def _introduction(self) -> int:
        """Hear the first words, and who says them."""
        self._socket.settimeout(HELPER_START)
        try:
            data, attached, _, _ = self._socket.recvmsg(1 << 16, socket.CMSG_SPACE(64))
        except TimeoutError:
            raise WorldError(f"a sandbox took over {HELPER_START:.0f} s to start") from None
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}") from error
        if not data:
            raise WorldError(f"no sandbox can be started: {self._last_words()}")
        self._socket.settimeout(None)
        self._take(data)
        for level, kind, content in attached:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                return int(_CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0])
        raise WorldError("a sandbox has not said who it is")

    def _watched(self) -> list[int]:
        """Handles of its first process, and of the one that waits for it outside."""
        handles = []
        try:
            for pid in (self.pid, psutil.Process(self.pid).ppid()):
                handles.append(os.pidfd_open(pid))
        except (OSError, psutil.NoSuchProcess) as error:
            for handle in handles:
                os.close(handle)
            raise WorldError(f"a sandbox has ended at once: {self._last_words()}") from error
        return handles

    def counts(self) -> Counts:
        """What was sent in the sandbox's network.

        Raises:
            WorldError: the sandbox is gone.
        """
        try:
            return read_counts(self.pid)
        except OSError as error:
            raise WorldError(f"the sandbox has ended: {error}") from error

    def _new_workshop(self) -> CppBuilder:
        """Compiles behind walls like the ranks', and shows them what it has made."""
        pool = self._pool
        return CppBuilder(pool.built, BUILT, compiling_command(pool.hidden), self._user)

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """The ranks of a world that still run."""
        outside = {}
        # whoever has ended, the whole sandbox too, is not among those that run
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.pid).children():
                with contextlib.suppress(OSError):
                    outside[_name_inside(process.pid)] = process
        return {rank: outside[pid] for rank, pid in enumerate(handle.pids) if pid in outside}

    def _last_words(self) -> str:
        return self._pool.last_words()

    def close(self) -> None:
        """End it, and all that is in it."""
        self._put_away()
        self._hang_up()
        until = time.monotonic() + KILL_PATIENCE
        for pidfd in self._pidfds:
            if not readable(pidfd, until - time.monotonic()):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds.clear()


def _name_inside(pid: int) -> int:
    """A process's number in the innermost namespace that it is in.

    Raises:
        OSError: it is gone.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])
