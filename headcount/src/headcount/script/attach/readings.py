"""What is read of a job that hangs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import psutil
from msgspec import Meta

from headcount.trace.flight_recorder import DumpEntry

__all__ = ["VERSION", "FileLock", "JobReadings", "RankReading", "StackFrame", "WorkerReading"]

#: The version of the files.
VERSION = 1

#: The part of a processor that a rank uses if it runs.
RUNNING = 0.2

_ENDED: tuple[str, ...] = (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE)
_STOPPED: tuple[str, ...] = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_RUNS: str = psutil.STATUS_RUNNING

_Rank = Annotated[int, Meta(ge=0, lt=1 << 20)]
_Text = Annotated[str, Meta(max_length=4096)]
_Seconds = Annotated[float, Meta(ge=0, le=1e11)]


class StackFrame(msgspec.Struct):
    """A frame of Python.

    Attributes:
        file: its file.
        line: the line that runs.
        name: its function.
        values: the few local variables of torch's that are asked for, as text.
        text: the line itself, of the person's own files.
    """

    file: _Text
    line: Annotated[int, Meta(ge=0, le=1 << 40)]
    name: _Text
    values: dict[_Text, _Text] = {}
    text: _Text = ""


class FileLock(msgspec.Struct):
    """A lock of a file that a process waits for, and the process that holds it."""

    path: _Text
    holder: int


class WorkerReading(msgspec.Struct):
    """A process that a rank has started, such as a worker of its loader."""

    pid: int
    frames: list[StackFrame] = []
    lock: FileLock | None = None


class RankReading(msgspec.Struct):
    """One reading of a rank.

    Attributes:
        pid: its process.
        taken: when it was read, in seconds since the epoch.
        state: the state of its main thread, by psutil's names.
        sleeps_in: the kernel's function that its main thread sleeps in; empty if none or unknown.
        cpu: seconds of processor time that it has used.
        switches: how often its main thread has been put to sleep or woken up.
        calls: its collectives, oldest first; None if they could not be read.
        frames: the stack of its main thread, innermost first; None if it could not be read.
        lock: the lock of a file that it waits for.
        workers: the processes below it, as far as they stand in a person's own line.
        unread: by source, why it could not be read.
    """

    pid: int
    taken: _Seconds
    state: _Text = ""
    sleeps_in: _Text = ""
    cpu: _Seconds = 0.0
    switches: int = 0
    calls: list[DumpEntry] | None = None
    frames: list[StackFrame] | None = None
    lock: FileLock | None = None
    workers: list[WorkerReading] = []
    unread: dict[_Text, _Text] = {}

    @property
    def has_ended(self) -> bool:
        """Whether the process is no more, or only its entry in the kernel's table."""
        return self.state in _ENDED

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped the process."""
        return self.state in _STOPPED

    @property
    def runs(self) -> bool:
        """Whether its main thread is on a processor, or about to be."""
        return self.state == _RUNS


class JobReadings(msgspec.Struct):
    """Two readings of the ranks of a job: all of them, or those of one machine.

    Attributes:
        job: what all of its ranks have in common, in words.
        world: the number of its ranks.
        started: how many ranks have been started on the machines that were read.
        first, last: the two readings, by rank.
        members: by a group's name, the rank at each place that has come to the making of the group;
            None where it is not known which rank that is.
        arrived: the same places at the time of the first reading.
        notes: what else could not be read, one sentence each.
    """

    job: _Text
    world: _Rank
    started: _Rank
    first: dict[_Rank, RankReading]
    last: dict[_Rank, RankReading]
    members: dict[_Text, dict[_Rank, _Rank | None]] = {}
    arrived: dict[_Text, dict[_Rank, _Rank | None]] = {}
    notes: list[_Text] = []
    version: int = VERSION

    @property
    def is_whole(self) -> bool:
        """Whether all of its ranks have been started on the machines that were read."""
        return self.started >= self.world

    def is_gone(self, rank: int) -> bool:
        """Return whether a rank has no process any more."""
        if rank in self.last:
            return self.last[rank].has_ended
        return self.is_whole

    def ran(self, rank: int) -> bool:
        """Return whether a rank has used the processor between the readings."""
        if rank not in self.last:
            return False
        before, after = self.first[rank], self.last[rank]
        used, most = after.cpu - before.cpu, after.taken - before.taken
        return (before.runs and after.runs) or used > RUNNING * most

    @property
    def has_moved(self) -> bool:
        """Whether a rank has called, run or been awake between the readings."""
        return any(
            before.pid != after.pid
            or before.switches != after.switches
            or before.calls != after.calls
            or self.ran(rank)
            for rank, before, after in self.pairs()
        )

    def pairs(self) -> list[tuple[int, RankReading, RankReading]]:
        """Return the ranks that were read, each with both of its readings."""
        return [(rank, self.first[rank], one) for rank, one in sorted(self.last.items())]
