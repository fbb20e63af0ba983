"""The processes of a world as their supervisor holds them, and how one is started."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import psutil

from grader.worlds.odometer import Counts

__all__ = [
    "KILL_PATIENCE",
    "Crew",
    "Ends",
    "Launcher",
    "Setting",
    "end",
    "last_words",
    "living",
    "start",
]

#: Seconds in which killed processes must be gone.
KILL_PATIENCE = 10.0

#: Seconds in which a rank must take what it is told, if its socket's buffer is full.
DEAF = 2


@dataclass(frozen=True)
class Setting:
    """What ranks find around them.

    Attributes:
        path: their ``sys.path``; empty for what they have by themselves.
        folder: their working directory.
        sealed: whether they give up what could reach beyond them, see
            :mod:`grader.worlds.seal`.
    """

    path: list[str]
    folder: str
    sealed: bool = False

    @classmethod
    def here(cls) -> Setting:
        """As in this process."""
        folder = str(Path.cwd())
        return cls([entry or folder for entry in sys.path], folder)


class Launcher(Protocol):
    """Starts the processes of worlds."""

    @property
    def setting(self) -> Setting:
        """What its ranks find around them."""
        ...

    def launch(self, size: int) -> Crew:
        """Start ``size`` ranks; they wait for their setup.

        Raises:
            WorldError: they cannot be started.
        """
        ...

    def counts(self) -> Counts | None:
        """What its ranks have sent, if they have a network to themselves."""
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

    def processes(self) -> dict[int, psutil.Process]:
        """The processes of those ranks that still run, as far as they are known."""
        return self.owner.processes(self)  # type: ignore[no-any-return]

    def signal(self, number: int) -> None:
        """Send a signal to every rank that still runs."""
        self.owner.signal(self, number)

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
class Ends:
    """Both ends of a rank's channels, for every rank."""

    controls: list[socket.socket] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    theirs: list[int] = field(default_factory=list)

    @classmethod
    def make(cls, size: int) -> Ends:
        """Open the channels of ``size`` ranks."""
        ends = cls()
        for _ in range(size):
            ours, theirs = socket.socketpair()
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", DEAF, 0))
            output, output_end = os.pipe()
            fault, fault_end = os.pipe()
            ends.controls.append(ours)
            ends.outputs.append(output)
            ends.faults.append(fault)
            ends.theirs += [theirs.detach(), output_end, fault_end]
        return ends

    def close_theirs(self) -> None:
        """Close the ranks' ends, once they have been passed on."""
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


def last_words(errors: IO[bytes]) -> str:
    """The last line that a process wrote to its standard error."""
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that has been told to end, though not for ever."""
    try:
        process.wait(KILL_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def living(pids: Sequence[int]) -> dict[int, psutil.Process]:
    """Those processes that there are, by their place among ``pids``."""
    found = {}
    for place, pid in enumerate(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            found[place] = psutil.Process(pid)
    return found
