"""The client of a fork server: ranks in milliseconds."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from grader.core.errors import WorldError
from grader.launch.cpp_build import CppBuilder
from grader.launch.kernel_counters import Counts
from grader.launch.process_group_handle import (
    ChannelEnds,
    ProcessGroupHandle,
    RankEnvironment,
    living,
    readable,
)

__all__ = ["Client", "ForkServer", "HELPER_START", "Helper", "KILL_PATIENCE", "start"]


# Processes of ours that serve this one over a socket, and end with it. ------------

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


# The client. ----------------------------------------------------------------------


class Client(ABC):
    """Speaks with a fork server, whoever has started that.

    Args:
        setting: what its ranks find around them; by default this process's.
    """

    def __init__(self, setting: RankEnvironment | None = None) -> None:
        self._setting = setting
        self._socket, self._theirs = socket.socketpair()
        self._reading = threading.Lock()
        self._buffer = b""
        self._names = map(str, itertools.count(1))
        self._handles: dict[str, ProcessGroupHandle] = {}
        self._dying: set[str] = set()
        self._ready: dict[str, Any] | None = None
        self._workshop: CppBuilder | None = None

    @property
    def setting(self) -> RankEnvironment:
        """What its ranks find around them."""
        return self._setting or RankEnvironment.here()

    @property
    def largest(self) -> int | None:
        """No bound."""
        return None

    def dangers(self) -> list[str]:
        """Why its children would not be safe; waits until it has started."""
        self._wait(lambda: self._ready is not None, HELPER_START)
        assert self._ready is not None
        return [what for what in ("threads", "cuda") if self._ready[what]]

    def launch(self, size: int) -> ProcessGroupHandle:
        """Ask for the ranks of a world; they are forked while the caller goes on."""
        ends, name = ChannelEnds.make(size), next(self._names)
        handle = ProcessGroupHandle(ends.controls, ends.outputs, ends.faults, [], self, name)
        self._handles[name] = handle
        request = json.dumps({"fork": name, "size": size}).encode() + b"\n"
        try:
            socket.send_fds(self._socket, [request], ends.theirs)
        except OSError as error:
            handle.close()
            raise WorldError(f"the fork server does not answer: {error}") from error
        finally:
            ends.close_theirs()
        return handle

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """The server's socket: it says when a rank ends."""
        return self._socket.fileno()

    def poll(self, handle: ProcessGroupHandle | None = None, patience: float = 0.0) -> None:
        """Read what the server has to say."""
        if not readable(self._socket.fileno(), patience):
            return
        with self._reading:
            try:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return  # another thread has read it; nothing more may ever come
            except OSError as error:
                raise WorldError(f"the fork server does not answer: {error}") from error
            self._take(data)

    def _take(self, data: bytes) -> None:
        if not data:
            raise WorldError(f"the fork server has ended: {self._last_words()}")
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._ready = message
        elif "forked" in message:
            handle = self._handles.get(message["forked"])
            if handle is not None:
                handle.pids[:] = message["pids"]
        elif "exited" in message:
            handle = self._handles.get(message["exited"])
            if handle is not None:
                handle.statuses[message["rank"]] = message["status"]
        elif "gone" in message:
            self._dying.discard(message["gone"])

    def _wait(self, done: Callable[[], bool], patience: float) -> None:
        until = time.monotonic() + patience
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                raise WorldError(f"the fork server took over {patience:.0f} s to answer")
            self.poll(patience=min(left, 1.0))

    @abstractmethod
    def _last_words(self) -> str:
        """What a server that has ended said of that."""

    def signal(self, handle: ProcessGroupHandle, number: int) -> None:
        """Have a signal sent to every rank of a world that still runs."""
        request = {"signal": handle.name, "number": int(number)}
        # a server that is gone has taken its ranks with it
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(request).encode() + b"\n")

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """The ranks of a world that still run."""
        return living(handle.pids)

    def kill(self, handle: ProcessGroupHandle) -> None:
        """Ask for the end of a world; :meth:`settle` waits for it."""
        self._handles.pop(handle.name, None)
        self._send_kill(handle.name)

    def _send_kill(self, name: str) -> None:
        self._dying.add(name)
        try:
            self._socket.sendall(json.dumps({"kill": name}).encode() + b"\n")
        except OSError:
            # the server is gone, and its ranks with it
            self._dying.discard(name)

    def workshop(self) -> CppBuilder:
        """Compiles what its ranks are to run."""
        if self._workshop is None:
            self._workshop = self._new_workshop()
        return self._workshop

    def _new_workshop(self) -> CppBuilder:
        return CppBuilder()

    def _put_away(self) -> None:
        """Remove what was compiled."""
        if self._workshop is not None:
            self._workshop.close()
            self._workshop = None

    def counts(self) -> Counts | None:
        """Nothing: others use the same network."""
        return None

    def settle(self) -> None:
        """Wait until every world that was asked to end is gone."""
        with contextlib.suppress(WorldError):
            self._wait(lambda: not self._dying, KILL_PATIENCE)

    def _hang_up(self) -> None:
        """The server ends when nobody listens any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class ForkServer(Client):
    """A fork server of this process's own."""

    def __init__(self) -> None:
        super().__init__()
        self._helper = Helper("grader.server.fork_server", self._theirs)
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether it runs, and belongs to this process and not to its parent."""
        return self._helper.usable

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._helper.pid

    def _last_words(self) -> str:
        return self._helper.last_words()

    def close(self) -> None:
        """End the server, and with it all its worlds."""
        if not self._helper.ours:
            return
        atexit.unregister(self.close)
        self._put_away()
        self._hang_up()
        self._helper.end()
