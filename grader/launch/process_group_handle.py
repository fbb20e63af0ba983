"""The processes of a world as their supervisor holds them."""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil

from grader.core.errors import WorldError, shortage
from grader.launch.cpp_build import CppBuilder
from grader.launch.kernel_counters import Counts

__all__ = [
    "ProcessGroupHandle",
    "ChannelEnds",
    "Launcher",
    "RankEnvironment",
    "living",
    "readable",
]

#: Seconds in which a rank must take what it is told, if its socket's buffer is full.
DEAF = 2


@dataclass(frozen=True)
class RankEnvironment:
    """What ranks find around them.

    Attributes:
        path: their ``sys.path``; empty for what they have by themselves.
        folder: their working directory.
        sealed: whether they give up what could reach beyond them, see
            :mod:`grader.rank.seccomp`.
        backend: what carries their messages, see :mod:`grader.rank.transports`.
    """

    path: list[str]
    folder: str
    sealed: bool = False
    backend: str = "gloo"

    @classmethod
    def here(cls) -> RankEnvironment:
        """As in this process."""
        folder = str(Path.cwd())
        return cls([entry or folder for entry in sys.path], folder)


class Launcher(Protocol):
    """Starts the processes of worlds."""

    @property
    def setting(self) -> RankEnvironment:
        """What its ranks find around them."""
        ...

    @property
    def largest(self) -> int | None:
        """Most ranks that a world of its can have, if there is a bound."""
        ...

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start ``size`` ranks; they wait for their setup.

        Raises:
            WorldError: they cannot be started.
        """
        ...

    def counts(self) -> Counts | None:
        """What its ranks have sent, if they have a network to themselves."""
        ...

    def workshop(self) -> CppBuilder:
        """Compiles what its ranks are to run, where strangers' code belongs."""
        ...

    def settle(self) -> None:
        """Wait until the processes of every closed world are gone."""
        ...

    def close(self) -> None:
        """End every world, and the launcher."""
        ...


@dataclass
class ProcessGroupHandle:
    """The processes of one world, as their supervisor holds them.

    Attributes:
        controls: one socket per rank, to speak with it.
        outputs: one descriptor per rank, to read what it prints.
        faults: one descriptor per rank, to read where it crashed or hangs.
        pids: process ids in rank order, once they are known.
        statuses: exit status by rank, of those known to have ended; negative
            for a signal.
        notices: readable when more may be known, or ``None``.
        surroundings: variables for each rank's environment, by rank.
    """

    controls: list[socket.socket]
    outputs: list[int]
    faults: list[int]
    pids: list[int]
    owner: Any
    name: str = ""
    statuses: dict[int, int] = field(default_factory=dict)
    surroundings: Sequence[dict[str, str]] = ()
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
class ChannelEnds:
    """Both ends of a rank's channels, for every rank."""

    controls: list[socket.socket] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    theirs: list[int] = field(default_factory=list)

    @classmethod
    def make(cls, size: int) -> ChannelEnds:
        """Open the channels of ``size`` ranks.

        Raises:
            WorldError: the system gives no more; none is left open.
        """
        ends = cls()
        try:
            for _ in range(size):
                ours, theirs = socket.socketpair()
                ends.controls.append(ours)
                ends.theirs.append(theirs.detach())
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", DEAF, 0))
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
    """Wait until there is something to read; whether there is.

    It takes no descriptor, and a descriptor may have any number: :func:`select.select` ends at
    1023.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, math.ceil(seconds * 1000))))


def living(pids: Sequence[int]) -> dict[int, psutil.Process]:
    """Those processes that there are, by their place among ``pids``."""
    found = {}
    for place, pid in enumerate(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            found[place] = psutil.Process(pid)
    return found
