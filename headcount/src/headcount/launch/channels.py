"""The channels of a world's ranks: all that they report, print and dump, and what they are told."""

from __future__ import annotations

import os
import re
import selectors
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from headcount.core.verdict import Site
from headcount.core.wire import DUMP_END
from headcount.launch.frame_channel import FrameChannel
from headcount.launch.launchers import ProcessGroupHandle
from headcount.launch.root_cause import callers_in_dump, site_in_dump

__all__ = ["ChannelListener", "OutputForwarder", "Printed", "RankChannels"]

#: Seconds between two looks at processes whose launcher gives no notice of their ends.
POLL = 0.1

#: Seconds that the reading of what is left may take, since a hostile rank never stops writing.
DRAIN = 0.25

#: Seconds after which the deadlines are looked at again, however much there is to read.
TURN = 0.1

#: Seconds in which the end of a process must be known that has closed its socket.
HUNG_UP = 2.0

#: Seconds of one wait for the ranks; a deadline may lie beyond what can be waited for.
LONGEST_WAIT = 3600.0

#: Bytes that are kept of output that is handed on: how a process died may stand there.
LAST = 1 << 12

#: Bytes taken from a rank's fault handler; a dump of all threads has a few thousand.
FAULTS = 1 << 18

#: The lines that the C++ runtime prints when gloo aborts a rank over a message that does not
#: fit.  Whether they are printed before the world is ended is chance, and the failure says
#: better what they mean.
_TERMINATE = re.compile(r"terminate called after throwing .*\n(?:  what\(\): .*\n?)?")


class Printed:
    """The output of each rank, up to a limit.

    Args:
        size: the number of ranks.
        limit: bytes that are kept of each rank's.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.limit = limit
        self._bytes = [bytearray() for _ in range(size)]

    def add(self, rank: int, data: bytes) -> bool:
        """Add a rank's output, and return whether that first exceeds the limit."""
        printed = self._bytes[rank]
        if len(printed) > self.limit:
            return False
        printed += data
        return len(printed) > self.limit

    def by(self, rank: int) -> str:
        """Return what was kept of a rank's output."""
        return bytes(self._bytes[rank]).decode("utf-8", "replace")

    def texts(self) -> tuple[str, ...]:
        """Return the output of each rank, in rank order."""
        texts = (bytes(one[: self.limit]).decode("utf-8", "replace") for one in self._bytes)
        return tuple(_TERMINATE.sub("", text) for text in texts)


class OutputForwarder(Printed):
    """The output of each rank, which is handed on as it comes; the last of it is kept.

    Args:
        size: the number of ranks.
        take: takes what a rank has printed.
    """

    def __init__(self, size: int, take: Callable[[int, bytes], None]) -> None:
        super().__init__(size, LAST)
        self._take = take

    def add(self, rank: int, data: bytes) -> bool:
        """Hand on a rank's output; there is never too much."""
        self._take(rank, data)
        printed = self._bytes[rank]
        printed += data
        del printed[:-LAST]
        return False


class ChannelListener(Protocol):
    """Takes what comes over the channels of a world's ranks."""

    def received(self, rank: int, messages: Iterable[object]) -> bool:
        """Take messages of a rank's; return whether to go on listening to it."""

    def printed(self, rank: int, data: bytes) -> bool:
        """Take what a rank has printed; return whether to go on reading that."""

    def on_activity(self) -> None:
        """Take note that a rank has written something."""

    def lost(self, rank: int) -> None:
        """Take note that the process of a rank is gone; all that it wrote has been taken."""


class RankChannels:
    """The channels of the ranks of a world.

    Args:
        handle: the processes of the world.
        controls: their sockets, in rank order.

    Attributes:
        handle: the processes of the world.
        size: the number of ranks that are listened to; those after them wait.
        gone: the ranks whose processes are gone.
    """

    def __init__(self, handle: ProcessGroupHandle, controls: Sequence[FrameChannel]) -> None:
        self.handle = handle
        self.size = len(controls)
        self.gone: set[int] = set()
        self._controls = controls
        #: the ranks that have closed their sockets, and when they count as gone
        self._hung_up: dict[int, float] = {}
        self._dumps = [b""] * self.size
        self._selector = selectors.DefaultSelector()
        for rank in range(self.size):
            os.set_blocking(handle.outputs[rank], False)
            os.set_blocking(handle.faults[rank], False)
            self._listen(rank)
        if handle.notices is not None:
            self._selector.register(handle.notices, selectors.EVENT_READ, ("notices", -1))

    def _descriptors(self, rank: int) -> list[tuple[str, int]]:
        """Return the kind and the descriptor of each channel of a rank."""
        handle = self.handle
        return [
            ("control", self._controls[rank].fileno()),
            ("output", handle.outputs[rank]),
            ("faults", handle.faults[rank]),
        ]

    def _listen(self, rank: int) -> None:
        """Listen to a rank that is not listened to."""
        for kind, fd in self._descriptors(rank):
            events = self._controls[rank].events if kind == "control" else selectors.EVENT_READ
            self._selector.register(fd, events, (kind, rank))

    def listen_to(self, size: int) -> None:
        """Listen to the first ``size`` ranks only."""
        for rank in range(len(self._controls)):
            for _, fd in self._descriptors(rank):
                self._forget(fd)
            if rank < size:
                self._listen(rank)
        self.size = size

    def limit(self, longest: int, budget: int | None) -> None:
        """Take frames of up to ``longest`` bytes from now on, and reports of up to ``budget``."""
        for control in self._controls:
            control.limit(longest, budget)

    @property
    def reported(self) -> int:
        """The bytes of reports that all ranks have spent of their budgets."""
        return sum(control.reported for control in self._controls)

    def send(self, rank: int, message: msgspec.Struct) -> None:
        """Send a rank a message, now or when it reads; one that has ended gets none."""
        control = self._controls[rank]
        control.send(message)
        self._expect(rank, control)

    def _expect(self, rank: int, control: FrameChannel) -> None:
        """Wait for a rank to read, or no longer, if it is listened to."""
        key = self._selector.get_map().get(control.fileno())
        if key is not None and key.events != control.events:
            self._selector.modify(key.fileobj, control.events, key.data)

    # Reading. ----------------------------------------------------------------

    def drain(self, listener: ChannelListener) -> None:
        """Read what has been written and not yet read."""
        until = time.monotonic() + DRAIN
        while self.read(0.0, listener) and time.monotonic() < until:
            pass

    def read(self, seconds: float, listener: ChannelListener) -> bool:
        """Wait up to ``seconds``, read once, and return whether a rank had written anything."""
        if self.handle.notices is None or self._hung_up.keys() - self.gone:
            seconds = min(seconds, POLL)
        any_data = self._read_ready(seconds, listener)
        if self.handle.notices is None:
            self.handle.poll()
        if not (self.handle.statuses or self._hung_up):
            return any_data  # as nearly always
        for rank in sorted({*self.handle.statuses, *self._ranks_overdue()} - self.gone):
            if rank >= self.size:
                continue
            # its end counts only when all that it wrote is read, and it may have written
            # after the read above
            if any_data or self._read_ready(0.0, listener):
                return True
            self._lose(rank, listener)
        return any_data

    def lose_hung_up(self, listener: ChannelListener) -> None:
        """Count the ranks as gone that have closed their sockets."""
        for rank in sorted(self._hung_up.keys() - self.gone):
            self._lose(rank, listener)

    def _ranks_overdue(self) -> list[int]:
        """Return the ranks that count as gone, since they have hung up for so long."""
        if not self._hung_up:
            return []
        now = time.monotonic()
        return [rank for rank, until in self._hung_up.items() if now >= until]

    def _lose(self, rank: int, listener: ChannelListener) -> None:
        """Read the rest of what a rank has written whose process is gone."""
        self.gone.add(rank)
        for fd in (self.handle.outputs[rank], self.handle.faults[rank]):
            key = self._selector.get_map().get(fd)
            while key is not None and self._read_pipe(fd, key.data[0], rank, listener):
                key = self._selector.get_map().get(fd)
        listener.lost(rank)

    def _read_ready(self, seconds: float, listener: ChannelListener) -> bool:
        """Read once from all that is readable; return whether a rank had written anything."""
        ready = self._selector.select(min(max(seconds, 0.0), LONGEST_WAIT))
        until = time.monotonic() + TURN
        any_data = False
        for key, events in ready:
            if time.monotonic() > until:
                return True  # what is left is still there the next time
            kind, rank = key.data
            if kind == "notices":
                self.handle.poll()
            elif kind == "control":
                any_data |= self._serve(rank, events, listener)
            else:
                any_data |= self._read_pipe(key.fd, kind, rank, listener)
        return any_data

    def _serve(self, rank: int, events: int, listener: ChannelListener) -> bool:
        """Send a rank what waits for it, and read what it has sent; return whether it had."""
        control = self._controls[rank]
        if events & selectors.EVENT_WRITE:
            control.flush()
            self._expect(rank, control)
        if not events & selectors.EVENT_READ:
            return False
        came = control.receive()
        if came is None:
            self._forget(control.fileno())
            self._hung_up.setdefault(rank, time.monotonic() + HUNG_UP)
            self.handle.poll()
            return False
        if not listener.received(rank, came):
            self._forget(control.fileno())
        return True

    def _forget(self, fd: int) -> None:
        """Stop reading from a descriptor."""
        with suppress(KeyError):
            self._selector.unregister(fd)

    def _read_pipe(self, fd: int, kind: str, rank: int, listener: ChannelListener) -> bool:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        listener.on_activity()
        if not data:
            self._forget(fd)
            return False
        if kind == "faults":
            self._dumps[rank] += data
            if len(self._dumps[rank]) > FAULTS:
                self._forget(fd)
                return False
        elif not listener.printed(rank, data):
            self._forget(fd)
            return False
        return True

    # Dumps of Python's fault handler. ----------------------------------------

    def dumped_site(self, rank: int) -> Site | None:
        """Return the line in the last dump of a rank's fault handler, if there is one."""
        return site_in_dump(self._dumps[rank].decode("utf-8", "replace"))

    def has_dumped(self, rank: int) -> bool:
        """Return whether a rank has dumped anything since its dumps were forgotten."""
        return bool(self._dumps[rank])

    def has_dumped_all(self, rank: int) -> bool:
        """Return whether a dump that a rank was asked for is here as a whole."""
        return DUMP_END in self._dumps[rank]

    def dumped_callers(self, rank: int, site: Site) -> list[Site]:
        """Return the lines that have called one, innermost first, by the last dump of a rank."""
        return callers_in_dump(self._dumps[rank].decode("utf-8", "replace"), site)

    def forget_dumps(self) -> None:
        """Forget all dumps, so that the next ones tell where the ranks are then."""
        self._dumps = [b""] * len(self._dumps)

    def close(self) -> None:
        """Stop reading from all ranks."""
        with suppress(KeyError, ValueError):
            self._selector.close()
