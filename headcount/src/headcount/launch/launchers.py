"""Launchers start the processes of a world: by a fork server, or as fresh interpreters.

A launcher returns a handle of the processes, through which the supervisor reads from them,
signals them and ends them.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import itertools
import json
import math
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

import psutil

from headcount.core.errors import WorldError, require_temporary_folder, shortage
from headcount.core.source_locations import OWN_FOLDERS, own_folders
from headcount.core.verdict import Failure
from headcount.server import ahead
from headcount.trace.trace import Trace

__all__ = [
    "HELPER_START",
    "KILL_PATIENCE",
    "Client",
    "ForkServer",
    "Helper",
    "Launcher",
    "ProcessGroupHandle",
    "RankEnvironment",
    "Spawner",
    "TrafficCounts",
    "default_launcher",
    "discard_launcher",
    "fork_server_here",
    "has_one_thread",
    "readable",
    "use_one_thread",
    "warm_up",
]


# A launcher, and the handle that it gives of the processes of a world. ------------

#: Seconds in which a server must read a request once its socket's buffer is full.
DEAF = 2


@dataclass(frozen=True)
class RankEnvironment:
    """The environment of ranks.

    Attributes:
        path: their ``sys.path``; empty to leave it as it is.
        folder: their working directory.
        sealed: whether they give up all system calls that reach beyond them, see
            :func:`headcount.rank.process_limits.seal`.
    """

    path: list[str]
    folder: str
    sealed: bool = False

    @classmethod
    def here(cls) -> RankEnvironment:
        """Return the environment of this process."""
        folder = str(Path.cwd())
        return cls([entry or folder for entry in sys.path], folder)


_Counts = TypeVar("_Counts")


class TrafficCounts(Protocol):
    """What an observer outside the ranks has counted on their network."""

    @property
    def payload(self) -> int:
        """The bytes that were carried."""
        ...

    def __sub__(self: _Counts, before: _Counts) -> _Counts: ...

    def contradiction(self, trace: Trace, connections: int) -> Failure | None:
        """Return a failure if more or less was certainly carried than the record says.

        Args:
            trace: the record.
            connections: those of the groups that have been made.
        """
        ...


class Launcher(Protocol):
    """Starts the processes of worlds."""

    @property
    def environment(self) -> RankEnvironment:
        """The environment of its ranks."""
        ...

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start ``size`` ranks, which wait for their setup, and return their handle.

        Raises:
            WorldError: they cannot be started.
        """
        ...

    def counts(self) -> TrafficCounts | None:
        """Return the kernel's counters, or None if the ranks share a network with others."""
        ...

    def settle(self) -> None:
        """Wait until the processes of every closed world are gone."""
        ...

    def close(self) -> None:
        """End every world, and the launcher itself."""
        ...


class ProcessOwner(Protocol):
    """What has started the processes of a world, and can end them."""

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """Return a descriptor that is readable when a rank may have ended, if there is one."""
        ...

    def poll(self, handle: ProcessGroupHandle, patience: float = 0.0) -> None:
        """Enter the ranks that have ended in ``statuses``; wait up to ``patience`` seconds."""
        ...

    def signal(self, handle: ProcessGroupHandle, number: int, rank: int | None = None) -> None:
        """Send a signal to every rank that still runs, or to one of them."""
        ...

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """Return the ranks that still run, by rank."""
        ...

    def kill(self, handle: ProcessGroupHandle) -> None:
        """Kill every process of the world."""
        ...


@dataclass
class ProcessGroupHandle:
    """The processes of one world, as their supervisor holds them.

    Attributes:
        controls: one socket per rank, for messages to and from it.
        outputs: one descriptor per rank, from which its output is read.
        faults: one descriptor per rank, from which the dumps of Python's fault handler are read.
        pids: process ids in rank order; empty until they are known.
        owner: the launcher that has started the processes.
        name: the name of the world at its owner.
        statuses: exit status by rank, of the ranks known to have ended; negative for a signal.
        closed: whether the processes were told to end.
    """

    controls: list[socket.socket]
    outputs: list[int]
    faults: list[int]
    pids: list[int]
    owner: ProcessOwner
    name: str = ""
    statuses: dict[int, int] = field(default_factory=dict)
    closed: bool = False

    @property
    def notices(self) -> int | None:
        """A descriptor that is readable when a rank may have ended, if there is one."""
        return self.owner.notices(self)

    def poll(self) -> None:
        """Update ``statuses`` without blocking."""
        self.owner.poll(self)

    def status(self, rank: int, patience: float = 2.0) -> int | None:
        """Return the exit status of a rank that is about to end; None after ``patience`` s."""
        until = time.monotonic() + patience
        while rank not in self.statuses and time.monotonic() < until:
            self.owner.poll(self, 0.02)
        return self.statuses.get(rank)

    def processes(self) -> dict[int, psutil.Process]:
        """Return the ranks that still run, by rank, as far as they are known."""
        return self.owner.processes(self)

    def signal(self, number: int, rank: int | None = None) -> None:
        """Send a signal to every rank that still runs, or to one of them."""
        self.owner.signal(self, number, rank)

    def close(self) -> None:
        """Kill every process of the world; :meth:`Launcher.settle` waits until they are gone."""
        if self.closed:
            return
        self.closed = True
        self.owner.kill(self)
        for control in self.controls:
            control.close()
        for fd in (*self.outputs, *self.faults):
            os.close(fd)


@dataclass
class ChannelEnds:
    """Both ends of the channels of every rank; ``theirs`` has three descriptors per rank."""

    controls: list[socket.socket] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    theirs: list[int] = field(default_factory=list)

    @classmethod
    def make(cls, size: int) -> ChannelEnds:
        """Open the channels of ``size`` ranks.

        Raises:
            WorldError: the system allows no more of them; none is left open.
        """
        ends = cls()
        try:
            for _ in range(size):
                ours, theirs = socket.socketpair()
                ends.controls.append(ours)
                ends.theirs.append(theirs.detach())
                for own in (ends.outputs, ends.faults):
                    reading, writing = os.pipe()
                    own.append(reading)
                    ends.theirs.append(writing)
        except OSError as error:
            ends.close_theirs()
            for control in ends.controls:
                control.close()
            for fd in (*ends.outputs, *ends.faults):
                os.close(fd)
            raise WorldError(f"no channels for {size} ranks: {shortage(error)}") from error
        return ends

    def close_theirs(self) -> None:
        """Close the ranks' ends, once they have been passed on."""
        for fd in self.theirs:
            os.close(fd)
        self.theirs.clear()


def readable(fd: int, seconds: float) -> bool:
    """Wait up to ``seconds`` until a descriptor can be read, and return whether it can.

    :func:`select.select` takes no descriptor above 1023, and ``epoll`` takes one itself.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, math.ceil(seconds * 1000))))


def living(pids: Sequence[int]) -> dict[int, psutil.Process]:
    """Return the processes that exist, by their position among ``pids``."""
    found = {}
    for place, pid in enumerate(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            found[place] = psutil.Process(pid)
    return found


# Helper processes, which serve this one over a socket and end with it. ------------

#: Seconds in which a helper must have imported torch, on the slowest machine.
HELPER_START = 120.0

#: Seconds in which killed processes must be gone.
KILL_PATIENCE = 10.0


class Helper:
    """A process that serves this one, but not the children that this one forks.

    Args:
        module: the module that it runs.
        theirs: its end of the socket, which is closed here.
        words: further arguments.
        prefix: a command to run it under.
        fork: whether it is forked from this process, see :func:`fork_server_here`, and not
            started as a new interpreter.
    """

    def __init__(
        self,
        module: str,
        theirs: socket.socket,
        words: Sequence[str] = (),
        prefix: Sequence[str] = (),
        fork: bool = False,
    ) -> None:
        require_temporary_folder()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process: _ForkedProcess | subprocess.Popen[bytes]
        with theirs:
            if fork:
                self._process = _ForkedProcess(module, theirs.fileno(), self._errors.fileno())
            else:
                self._process = start(module, [theirs.fileno()], self._errors, words, prefix)
        self._owner = os.getpid()

    @property
    def pid(self) -> int:
        """The process id of the helper, or of the command that it runs under."""
        return self._process.pid

    @property
    def is_own(self) -> bool:
        """Whether this process has started it."""
        return self._owner == os.getpid()

    @property
    def usable(self) -> bool:
        """Whether it runs and this process has started it."""
        return self.is_own and self._process.poll() is None

    def last_line(self) -> str:
        """Return the last line of its standard error, else its exit status, else nothing."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
        try:
            return f"exit status {self._process.wait(1)}"
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            return ""

    def end(self) -> None:
        """Wait until it has ended, now that its socket is closed; kill it if that takes long."""
        try:
            self._process.wait(KILL_PATIENCE)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._errors.close()


class _ForkedProcess:
    """A fork of this process that runs ``run_in_child`` of a module; used like a ``Popen``."""

    def __init__(self, module: str, fd: int, errors: int) -> None:
        run_in_child = importlib.import_module(module).run_in_child
        variables = {**os.environ, **_variables()}
        # the child must not write what this process has not written yet
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            run_in_child(fd, errors, variables, ahead.modules)
        self._process = psutil.Process(self.pid)

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        try:
            return cast("int | None", self._process.wait(0))
        except psutil.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status once it has ended."""
        return cast("int | None", self._process.wait(timeout))

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()


#: Variables that libraries read once, when they are loaded: one thread each, and no warnings.
_LOADING = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def _variables() -> dict[str, str]:
    """Return the environment variables of servers and ranks.

    Loopback only, one thread, no warnings, and one hash seed: :mod:`headcount.core.set_orders`.
    """
    # where our own modules are, also those of a package that uses these and is not installed
    roots = dict.fromkeys(str(Path(folder).parent) for folder in own_folders().split(os.pathsep))
    path = os.pathsep.join([*roots, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        OWN_FOLDERS: own_folders(),
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        **_LOADING,
    }


def start(
    module: str,
    fds: Sequence[int],
    errors: IO[bytes] | int,
    words: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Run a module in a new interpreter, in a session of its own.

    Args:
        module: the module to run.
        fds: descriptors to leave open; their numbers are its arguments.
        errors: the file for its standard error, as :class:`subprocess.Popen` takes it.
        words: further arguments.
        prefix: a command to run it under, such as that of a sandbox.
    """
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", module, *map(str, fds), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=fds,
        env=_variables(),
        # away from the current folder, where a student's random.py may lie
        cwd=Path(__file__).resolve().parent.parent.parent,
        # Ctrl-C in a terminal, and Stop in Jupyter, go to the whole group
        start_new_session=True,
    )


# The client of a fork server, which forks ranks in milliseconds. ------------------


class Client(ABC):
    """A launcher that asks a fork server for its ranks.

    Args:
        environment: the environment of its ranks; by default this process's.

    Attributes:
        connection: the socket to the server.
        their_end: its other end, which a subclass hands to the server.
    """

    def __init__(self, environment: RankEnvironment | None = None) -> None:
        self._environment = environment
        self.connection, self.their_end = socket.socketpair()
        limit = struct.pack("ll", DEAF, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._reading = threading.Lock()
        self._buffer = b""
        self._names = map(str, itertools.count(1))
        self._handles: dict[str, ProcessGroupHandle] = {}
        self._dying: set[str] = set()
        self._ready: dict[str, Any] | None = None

    @property
    def environment(self) -> RankEnvironment:
        """The environment of its ranks."""
        return self._environment or RankEnvironment.here()

    def dangers(self) -> list[str]:
        """Return what makes it unsafe to fork from the server: ``threads``, ``cuda`` or nothing."""
        self._wait(lambda: self._ready is not None, HELPER_START)
        assert self._ready is not None
        return [what for what in ("threads", "cuda") if self._ready[what]]

    def launch(self, size: int) -> ProcessGroupHandle:
        """Ask for the ranks of a world, which are forked while the caller goes on."""
        ends, name = ChannelEnds.make(size), next(self._names)
        handle = ProcessGroupHandle(ends.controls, ends.outputs, ends.faults, [], self, name)
        self._handles[name] = handle
        asked = {"fork": name, "size": size}
        request = json.dumps(asked).encode() + b"\n"
        try:
            socket.send_fds(self.connection, [request], ends.theirs)
        except OSError as error:
            handle.close()
            raise WorldError(f"the fork server does not answer: {error}") from error
        finally:
            ends.close_theirs()
        return handle

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """Return the server's socket, on which the server reports that a rank has ended."""
        return self.connection.fileno()

    def poll(self, handle: ProcessGroupHandle | None = None, patience: float = 0.0) -> None:
        """Read what the server has reported."""
        if not readable(self.connection.fileno(), patience):
            return
        with self._reading:
            try:
                data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return  # another thread has read it, and nothing more may come
            except OSError as error:
                raise WorldError(f"the fork server does not answer: {error}") from error
            self.take_reports(data)

    def take_reports(self, data: bytes) -> None:
        """Take what the server has reported of its ranks.

        Raises:
            WorldError: it has ended.
        """
        if not data:
            raise WorldError(f"the fork server has ended: {self.last_line()}")
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._handle_message(json.loads(line))

    def _handle_message(self, message: dict[str, Any]) -> None:
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
    def last_line(self) -> str:
        """Return why the server has ended, as far as it said."""

    def signal(self, handle: ProcessGroupHandle, number: int, rank: int | None = None) -> None:
        """Ask for a signal to every rank of a world that still runs, or to one of them."""
        request = {"signal": handle.name, "number": int(number), "rank": rank}
        # the ranks of a server end with it
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(request).encode() + b"\n")

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """Return the ranks of a world that still run."""
        return living(handle.pids)

    def kill(self, handle: ProcessGroupHandle) -> None:
        """Ask for the end of a world, for which :meth:`settle` waits."""
        self._handles.pop(handle.name, None)
        self._send_kill(handle.name)

    def _send_kill(self, name: str) -> None:
        self._dying.add(name)
        try:
            self.connection.sendall(json.dumps({"kill": name}).encode() + b"\n")
        except OSError:
            # the server is gone, and its ranks with it
            self._dying.discard(name)

    def counts(self) -> TrafficCounts | None:
        """Return None: other processes use the same network."""
        return None

    def settle(self) -> None:
        """Wait until every world that was asked to end is gone."""
        with contextlib.suppress(WorldError):
            self._wait(lambda: not self._dying, KILL_PATIENCE)

    def disconnect(self) -> None:
        """Close the socket, at which the server ends."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class ForkServer(Client):
    """A launcher with a fork server of its own.

    Args:
        fork: whether the server is forked from this process, see :func:`fork_server_here`.
    """

    def __init__(self, fork: bool = False) -> None:
        super().__init__()
        self._helper = Helper(
            "headcount.server.fork_server", self.their_end, ahead.modules, fork=fork
        )
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether the server runs and this process, not its parent, has started it."""
        return self._helper.usable

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._helper.pid

    def last_line(self) -> str:
        """Return what the server has printed last."""
        return self._helper.last_line()

    def close(self) -> None:
        """End the server and all its worlds."""
        if not self._helper.is_own:
            return
        atexit.unregister(self.close)
        self.disconnect()
        self._helper.end()


# Ranks as fresh interpreters: slow to start, and safe on every platform. -----------


class Spawner:
    """A launcher that starts every rank as a fresh interpreter, which takes seconds."""

    def __init__(self) -> None:
        self._processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._names = map(str, itertools.count(1))

    @property
    def environment(self) -> RankEnvironment:
        """The environment of its ranks, which is this process's."""
        return RankEnvironment.here()

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start the ranks of a world."""
        ends, name = ChannelEnds.make(size), next(self._names)
        processes: list[subprocess.Popen[bytes]] = []
        self._processes[name] = processes
        handle = ProcessGroupHandle(ends.controls, ends.outputs, ends.faults, [], self, name)
        try:
            for rank in range(size):
                fds = ends.theirs[3 * rank : 3 * rank + 3]
                processes.append(start("headcount.server.process", fds, subprocess.DEVNULL))
                handle.pids.append(processes[-1].pid)
        except OSError as error:
            handle.close()
            raise WorldError(f"a rank could not be started: {error}") from error
        finally:
            ends.close_theirs()
        return handle

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """Return None: the supervisor has to poll."""
        return None

    def poll(self, handle: ProcessGroupHandle, patience: float = 0.0) -> None:
        """Ask every process whether it has ended."""
        if patience:
            time.sleep(patience)
        for rank, process in enumerate(self._processes.get(handle.name, [])):
            status = process.poll()
            if status is not None:
                handle.statuses[rank] = status

    def signal(self, handle: ProcessGroupHandle, number: int, rank: int | None = None) -> None:
        """Send a signal to every rank of a world that still runs, or to one of them."""
        for each, process in enumerate(self._processes.get(handle.name, [])):
            if rank in (None, each):
                # it does nothing to a process that has been reaped
                process.send_signal(number)

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """Return the ranks of a world that still run."""
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

    def counts(self) -> TrafficCounts | None:
        """Return None: other processes use the same network."""
        return None

    def settle(self) -> None:
        """Return at once, since :meth:`kill` has waited."""

    def close(self) -> None:
        """End every world."""
        for name in list(self._processes):
            self._end(name)


# The launcher of this process. ----------------------------------------------------

_current: ForkServer | Spawner | None = None


def _cannot_fork() -> str:
    """Return why this machine cannot fork ranks, or an empty string if it can."""
    if os.environ.get("HEADCOUNT_START") == "spawn":
        return "HEADCOUNT_START=spawn asks for it"
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        return "this platform cannot fork"
    return ""


def warm_up() -> None:
    """Start the fork server in the background, where this machine can fork."""
    global _current
    if _current is None and not _cannot_fork():
        _current = ForkServer()


def fork_server_here() -> None:
    """Import torch, and fork the server from this process before it does anything else.

    It is for commands: torch takes seconds to import, and so both processes have it at once.  A
    process that has torch or threads already gets a server that is a new interpreter, as
    everywhere else: it may have used torch, and a fork takes no thread along.
    """
    global _current
    if _current is not None or _cannot_fork() or "torch" in sys.modules:
        warm_up()
        return
    use_one_thread()
    gc.disable()  # modules are no garbage; looking for some takes a tenth of the imports' time
    for module in ("headcount.server.process", *ahead.modules):
        importlib.import_module(module)
    _current = ForkServer(fork=has_one_thread())
    gc.freeze()
    gc.enable()


def use_one_thread() -> None:
    """Let the libraries that are loaded from now on start no threads, so that this can fork."""
    os.environ.update(_LOADING)


def has_one_thread() -> bool:
    """Return whether this process can be forked: it can, and has a single thread.

    A fork takes no other thread along, and what that held stays locked.
    """
    return hasattr(os, "fork") and bool(psutil.Process().num_threads() == 1)


def discard_launcher() -> None:
    """End this process's launcher and all its worlds, and start a new one."""
    global _current
    if _current is not None:
        _current.close()
        _current = None
    warm_up()


def default_launcher() -> ForkServer | Spawner:
    """Return this process's launcher, and start it if it is not running.

    Where forking is unsafe, because the platform cannot fork or the server has started threads
    or CUDA, ranks are started as fresh interpreters, and one warning says so.
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
