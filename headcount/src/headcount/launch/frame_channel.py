"""The judge's end of a conversation with one process, for which the judge never waits.

A process that runs a student's code may send half a frame, urgent data, or nothing; it may stop
reading, or close one direction.  So the socket never blocks in either direction: what cannot be
sent now is kept, and what has come is taken.  When to stop is decided by whoever holds the channel,
with a deadline.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec

from headcount.core.wire import LONGEST, FrameReader, FromRank, framed

__all__ = ["FrameChannel", "messages"]

#: Bytes that are read at a time.  What they hold is heard before anything else is, so that more of
#: them would let the judge's deadlines wait.
PAGE = 1 << 16

#: Bytes of messages that may wait behind another for a process that does not read; the first may
#: have any size.
BACKLOG = 16 << 20


class FrameChannel:
    """A socket that carries frames to a process and messages from it.

    Args:
        sock: the socket, which does not block from now on.
        longest: the largest size in bytes of a frame from the process.

    Attributes:
        deaf: whether the process cannot be told anything any more: it has closed its end, or has
            let too much wait.
    """

    def __init__(self, sock: socket.socket, longest: int = LONGEST) -> None:
        sock.setblocking(False)
        # urgent data would make a socket readable that has nothing to read: here it is a byte like
        # any other
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        self.sock = sock
        self.deaf = False
        self._reader = FrameReader(longest)
        self._waiting = bytearray()
        self._behind = 0

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self.sock.fileno()

    def limit(self, longest: int, budget: int | None = None) -> None:
        """Take frames of up to ``longest`` bytes from now on, and reports of up to ``budget``."""
        self._reader.longest, self._reader.budget, self._reader.spent = longest, budget, 0

    @property
    def reported(self) -> int:
        """The bytes of reports that have come since there was a limit on them."""
        return self._reader.spent

    def send(self, message: msgspec.Struct) -> None:
        """Send a message, at once or as soon as the process reads; to a deaf one, never."""
        parts = framed(message)
        self._behind += sum(map(len, parts)) if self._waiting else 0
        if self._behind > BACKLOG:
            self._give_up()
        if not self.deaf:
            for part in parts:
                self._waiting += part
            self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the socket takes it now."""
        try:
            while self._waiting:
                del self._waiting[: self.sock.send(self._waiting)]
            self._behind = 0
        except BlockingIOError:
            return
        except OSError:  # its end is closed, which reading will show
            self._give_up()

    def _give_up(self) -> None:
        self.deaf = True
        self._waiting.clear()

    @property
    def events(self) -> int:
        """What to wait for, as :mod:`selectors` has it."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting else 0)

    def receive(self) -> Iterator[FromRank] | None:
        """Take what has come; return the messages that it completes, or None at the end.

        Raises:
            BrokenFrame: while the messages are iterated, what came is none.
        """
        try:
            data = self.sock.recv(PAGE)
        except BlockingIOError:
            return iter(())
        except ConnectionResetError:
            return None
        return self._reader.feed(data) if data else None


def messages(
    channel: FrameChannel,
    until: float,
    beside: Mapping[int, Callable[[], bool]] | None = None,
) -> Iterator[FromRank]:
    """Yield what a process sends, until it closes its end.

    Args:
        channel: the channel to it.
        until: the time on the monotonic clock at which to stop.
        beside: functions to call when other descriptors can be read, until they return False.

    Raises:
        TimeoutError: the time is over.
        BrokenFrame: what came is no message.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(channel, channel.events)
        for fd in beside or ():
            selector.register(fd, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, ready in selector.select(left):
                if key.fileobj is not channel:
                    if beside is not None and not beside[key.fd]():
                        selector.unregister(key.fileobj)
                    continue
                if ready & selectors.EVENT_WRITE:
                    channel.flush()
                if ready & selectors.EVENT_READ:
                    came = channel.receive()
                    if came is None:
                        return
                    yield from came
            selector.modify(channel, channel.events)
