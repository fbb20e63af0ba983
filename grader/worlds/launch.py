"""Starting the processes of a world, and ending them whatever happens.

:class:`ForkServer` is the usual way: one warm server per client process, which
forks ranks in milliseconds.  :class:`Spawner` starts every rank as a fresh
interpreter, which takes seconds and works where forking is unsafe.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from grader.errors import WorldError

__all__ = [
    "Crew",
    "ForkServer",
    "Launcher",
    "Spawner",
    "default_launcher",
    "discard_launcher",
    "warm_up",
]

#: Seconds in which a server must have imported torch, on the slowest machine.
SERVER_START = 120.0

#: Seconds in which killed processes must be gone.
KILL_PATIENCE = 10.0


class Launcher(Protocol):
    """Starts the processes of worlds."""

    def launch(self, size: int) -> Crew:
        """Start ``size`` ranks; they wait for their setup.

        Raises:
            WorldError: they cannot be started.
        """
        ...

    def settle(self) -> None:
        """Wait until the processes of every closed world are gone."""
        ...

    def close(self) -> None:
        """End every world, and the launcher."""
        ...


@dataclass
class Crew:
    """The processes of one world, as their supervisor holds them.

    Attributes:
        controls: one socket per rank, to speak with it.
        outputs: one descriptor per rank, to read what it prints.
        faults: one descriptor per rank, to read where it crashed or hangs.
        pids: process ids in rank order, once they are known.
        statuses: exit status by rank, of those known to have ended; negative
            for a signal.
        notices: readable when more may be known, or ``None``.
    """

    controls: list[socket.socket]
    outputs: list[int]
    faults: list[int]
    pids: list[int]
    owner: Any
    name: str = ""
    statuses: dict[int, int] = field(default_factory=dict)
    closed: bool = False

    @property
    def notices(self) -> int | None:
        """A descriptor that is readable when a rank may have ended."""
        return self.owner.notices(self)  # type: ignore[no-any-return]

    def poll(self) -> None:
        """Learn which ranks have ended; does not block."""
        self.owner.poll(self)

    def status(self, rank: int, patience: float = 2.0) -> int | None:
        """Exit status of a rank that is about to end."""
        until = time.monotonic() + patience
        while rank not in self.statuses and time.monotonic() < until:
            self.owner.poll(self, 0.02)
        return self.statuses.get(rank)

    def signal(self, number: int) -> None:
        """Send a signal to every rank that still runs."""
        for rank, pid in enumerate(self.pids):
            if rank not in self.statuses:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def close(self) -> None:
        """Kill every process of the world; :meth:`Launcher` reaps them."""
        if self.closed:
            return
        self.closed = True
        self.owner.kill(self)
        for control in self.controls:
            control.close()
        for fd in (*self.outputs, *self.faults):
            os.close(fd)


@dataclass
class _Ends:
    """Both ends of a rank's channels, for every rank."""

    controls: list[socket.socket] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    theirs: list[int] = field(default_factory=list)

    @classmethod
    def make(cls, size: int) -> _Ends:
        ends = cls()
        for _ in range(size):
            ours, theirs = socket.socketpair()
            output, output_end = os.pipe()
            fault, fault_end = os.pipe()
            ends.controls.append(ours)
            ends.outputs.append(output)
            ends.faults.append(fault)
            ends.theirs += [theirs.detach(), output_end, fault_end]
        return ends

    def close_theirs(self) -> None:
        for fd in self.theirs:
            os.close(fd)
        self.theirs.clear()


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


def _start(module: str, fds: Sequence[int], errors: IO[bytes], prefix: Sequence[str] = ()) -> Any:
    """Run a module of ours in a new interpreter, in a session of its own."""
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


class ForkServer:
    """A client's own fork server.

    Args:
        prefix: a command to run the server under, such as a sandbox.
    """

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._socket, theirs = socket.socketpair()
        self._process = _start("grader.worlds.server", [theirs.fileno()], self._errors, prefix)
        theirs.close()
        self._buffer = b""
        self._names = map(str, itertools.count(1))
        self._crews: dict[str, Crew] = {}
        self._dying: set[str] = set()
        self._ready: dict[str, Any] | None = None
        self._pid = os.getpid()
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether it runs, and belongs to this process and not to its parent."""
        return self._pid == os.getpid() and self._process.poll() is None

    def dangers(self) -> list[str]:
        """Why its children would not be safe; waits until it has started."""
        self._wait(lambda: self._ready is not None, SERVER_START)
        assert self._ready is not None
        return [what for what in ("threads", "cuda") if self._ready[what]]

    def launch(self, size: int) -> Crew:
        """Ask for the ranks of a world; they are forked while the caller goes on."""
        ends, name = _Ends.make(size), next(self._names)
        crew = Crew(ends.controls, ends.outputs, ends.faults, [], self, name)
        self._crews[name] = crew
        request = json.dumps({"fork": name, "size": size}).encode() + b"\n"
        try:
            socket.send_fds(self._socket, [request], ends.theirs)
        except OSError as error:
            crew.close()
            raise WorldError(f"the fork server does not answer: {error}") from error
        finally:
            ends.close_theirs()
        return crew

    def notices(self, crew: Crew) -> int | None:
        """The server's socket: it says when a rank ends."""
        return self._socket.fileno()

    def poll(self, crew: Crew | None = None, patience: float = 0.0) -> None:
        """Read what the server has to say."""
        readable, _, _ = select.select([self._socket], [], [], patience)
        if not readable:
            return
        try:
            data = self._socket.recv(1 << 16)
        except OSError as error:
            raise WorldError(f"the fork server does not answer: {error}") from error
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
            crew = self._crews.get(message["forked"])
            if crew is not None:
                crew.pids[:] = message["pids"]
        elif "exited" in message:
            crew = self._crews.get(message["exited"])
            if crew is not None:
                crew.statuses[message["rank"]] = message["status"]
        elif "gone" in message:
            self._dying.discard(message["gone"])

    def _wait(self, done: Any, patience: float) -> None:
        until = time.monotonic() + patience
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                raise WorldError(f"the fork server took over {patience:.0f} s to answer")
            self.poll(patience=min(left, 1.0))

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._process.wait()}"

    def kill(self, crew: Crew) -> None:
        """Ask for the end of a world; :meth:`settle` waits for it."""
        self._crews.pop(crew.name, None)
        self._send_kill(crew.name)

    def _send_kill(self, name: str) -> None:
        self._dying.add(name)
        try:
            self._socket.sendall(json.dumps({"kill": name}).encode() + b"\n")
        except OSError:
            # the server is gone, and its ranks with it
            self._dying.discard(name)

    def settle(self) -> None:
        """Wait until every world that was asked to end is gone."""
        with contextlib.suppress(WorldError):
            self._wait(lambda: not self._dying, KILL_PATIENCE)

    def close(self) -> None:
        """End the server, and with it all its worlds."""
        if self._pid != os.getpid():
            return
        atexit.unregister(self.close)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        try:
            self._process.wait(KILL_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


class Spawner:
    """Starts every rank as a fresh interpreter: slow, and safe anywhere."""

    def __init__(self) -> None:
        self._processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._names = map(str, itertools.count(1))

    def launch(self, size: int) -> Crew:
        """Start the ranks of a world."""
        ends, name = _Ends.make(size), next(self._names)
        processes: list[subprocess.Popen[bytes]] = []
        self._processes[name] = processes
        crew = Crew(ends.controls, ends.outputs, ends.faults, [], self, name)
        try:
            for rank in range(size):
                fds = ends.theirs[3 * rank : 3 * rank + 3]
                processes.append(_start("grader.worlds.rank", fds, subprocess.DEVNULL))  # type: ignore[arg-type]
                crew.pids.append(processes[-1].pid)
        except OSError as error:
            crew.close()
            raise WorldError(f"a rank could not be started: {error}") from error
        finally:
            ends.close_theirs()
        return crew

    def notices(self, crew: Crew) -> int | None:
        """Nothing tells; the supervisor polls."""
        return None

    def poll(self, crew: Crew, patience: float = 0.0) -> None:
        """Ask every process whether it has ended."""
        if patience:
            time.sleep(patience)
        for rank, process in enumerate(self._processes.get(crew.name, [])):
            status = process.poll()
            if status is not None:
                crew.statuses[rank] = status

    def kill(self, crew: Crew) -> None:
        """Kill every process group of a world."""
        self._end(crew.name)

    def _end(self, name: str) -> None:
        processes = self._processes.pop(name, [])
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()

    def settle(self) -> None:
        """Nothing to wait for: :meth:`kill` has."""

    def close(self) -> None:
        """End every world."""
        for name in list(self._processes):
            self._end(name)


_current: ForkServer | Spawner | None = None


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
