"""Processes that say what a test tells them to, over real sockets to a real judge."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from headcount.core.wire import (
    FrameWriter,
    Joined,
    Load,
    Perform,
    Ready,
    RunCall,
    Setup,
    Simulate,
    ToRank,
    framed,
    read_frames,
)
from headcount.launch.launchers import ChannelEnds, ProcessGroupHandle, RankEnvironment

#: What a process does on a frame: the frame and the process are given.
Part = Callable[[Any, "Process"], None]


class Process:
    """One process: its ends of the channels, and what it does.

    Attributes:
        rank: its number in its world.
        size: the number of ranks in the world.
        control: its socket.
        calls: how many calls it has been asked for.
        closed: whether it has ended.
    """

    def __init__(self, rank: int, size: int, control: socket.socket, output: int, faults: int):
        self.rank, self.size, self.calls = rank, size, 0
        self.control, self.output, self.faults = control, output, faults
        self.closed = False
        #: set once the judge has asked for its end
        self.ended = threading.Event()

    def say(self, *messages: msgspec.Struct) -> None:
        """Send messages, as a rank sends them."""
        writer = FrameWriter(self.control)
        for message in messages:
            writer.write(message)

    def send(self, data: bytes) -> None:
        """Send any bytes."""
        self.control.sendall(data)

    def close(self) -> None:
        """Close all channels, as the end of a process does."""
        self.closed = True
        # what reads from the socket keeps it open
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        for fd in (self.output, self.faults):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.output = self.faults = -1


class Scripted:
    """A launcher of processes that are threads of the test.

    Args:
        parts: what a process does on a frame, by the frame's class; without one, it does what a
            rank does.
    """

    environment = RankEnvironment([], "/")

    def __init__(self, **parts: Part) -> None:
        self._parts = parts
        self._processes: dict[int, list[Process]] = {}
        self._threads: dict[int, list[threading.Thread]] = {}
        self._ending: list[threading.Thread] = []

    def launch(self, size: int) -> ProcessGroupHandle:
        ends = ChannelEnds.make(size)
        theirs = iter(ends.theirs)
        processes = [
            Process(rank, size, socket.socket(fileno=next(theirs)), next(theirs), next(theirs))
            for rank in range(size)
        ]
        handle = ProcessGroupHandle(ends.controls, ends.outputs, ends.faults, [], self)
        self._processes[id(handle)] = processes
        for process in processes:
            thread = threading.Thread(target=self._run, args=(process,), daemon=True)
            thread.start()
            self._threads.setdefault(id(handle), []).append(thread)
        return handle

    def _run(self, process: Process) -> None:
        # the judge may have closed its end, and the process its own
        with contextlib.suppress(OSError, ValueError):
            for frame in read_frames(process.control):
                self._parts.get(type(frame).__name__, _honest)(frame, process)
        process.close()

    def notices(self, handle: ProcessGroupHandle) -> None:
        return None

    def poll(self, handle: ProcessGroupHandle, patience: float = 0.0) -> None:
        for process in self._processes[id(handle)]:
            if process.closed:
                handle.statuses[process.rank] = 0

    def signal(self, handle: ProcessGroupHandle, number: int, rank: int | None = None) -> None:
        pass

    def processes(self, handle: ProcessGroupHandle) -> dict[int, Any]:
        return {}

    def kill(self, handle: ProcessGroupHandle) -> None:
        self._ending += self._threads.pop(id(handle), [])
        for process in self._processes.pop(id(handle), []):
            process.ended.set()
            with contextlib.suppress(OSError):
                process.control.shutdown(socket.SHUT_RDWR)

    def counts(self) -> None:
        return None

    def settle(self) -> None:
        for thread in self._ending:
            thread.join(10)
        assert not any(thread.is_alive() for thread in self._ending)
        self._ending.clear()

    def close(self) -> None:
        self.settle()


def _honest(frame: ToRank, process: Process) -> None:
    if isinstance(frame, Setup):
        process.say(Joined())
    elif isinstance(frame, Load):
        process.size = frame.size
        process.say(Ready())
    elif isinstance(frame, (RunCall, Simulate, Perform)):
        process.close()


# Ways to stop in the middle of a conversation. --------------------------------------


def silence(process: Process) -> None:
    """Say nothing more."""


def urgent(process: Process) -> None:
    """Send one byte of urgent data, which wakes the reader up and is not in the stream."""
    process.control.send(b"!", socket.MSG_OOB)


def half_a_length(process: Process) -> None:
    """Send two of the four bytes of a length."""
    process.send(b"\x10\x00")


def length(process: Process) -> None:
    """Send a length alone."""
    process.send(b"\x10\x00\x00\x00")


def half_a_frame(process: Process) -> None:
    """Send a length, and less than it says."""
    process.send(b"\x10\x00\x00\x00half")


def urgent_in_a_frame(process: Process) -> None:
    """Send a length, and urgent data."""
    length(process)
    urgent(process)


def descriptor(process: Process) -> None:
    """Send half a length with a descriptor attached."""
    socket.send_fds(process.control, [b"\x10"], [process.control.fileno()])


def done_writing(process: Process) -> None:
    """Close one direction, and live on."""
    process.control.shutdown(socket.SHUT_WR)


def done_reading(process: Process) -> None:
    """Close the other direction, and live on."""
    process.control.shutdown(socket.SHUT_RD)


def hang_up(process: Process) -> None:
    """Close both directions, and live on."""
    process.control.shutdown(socket.SHUT_RDWR)


def output(process: Process) -> None:
    """Print without end."""
    with contextlib.suppress(OSError):
        while True:
            os.write(process.output, b"x" * 1000)


def frames(process: Process) -> None:
    """Send without end what is harmless."""
    with contextlib.suppress(OSError):
        while True:
            process.send(b"".join(framed(Joined())) * 100)


def bytes_without_end(process: Process) -> None:
    """Send without end a frame that is as long as one may be."""
    with contextlib.suppress(OSError):
        process.send((1 << 29).to_bytes(4, "little"))
        while True:
            process.send(bytes(1 << 16))


STOPS = (
    silence, urgent, half_a_length, length, half_a_frame, urgent_in_a_frame, descriptor,
    done_writing, done_reading, hang_up, output, frames, bytes_without_end,
)  # fmt: skip


def stopped(stop: Callable[[Process], None]) -> Part:
    """A part that stops so, and lets the judge wait."""

    def part(frame: Any, process: Process) -> None:
        stop(process)
        process.ended.wait(60)

    return part
