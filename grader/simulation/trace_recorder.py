"""The record of a simulated run: the same events that a real rank reports.

Times are nanoseconds, like a real rank's, but of virtual time.  There computing
takes none, and much happens at one moment; to keep a rank's events in order,
each is at least a nanosecond after the one before.
"""

from __future__ import annotations

from typing import Any

import torch

from grader.core.events import (
    ANY,
    Blocked,
    Done,
    Entered,
    Event,
    Grouped,
    Left,
    Marked,
    Matched,
    Posted,
)
from grader.core.source_locations import line_here
from grader.core.values import dtype_name
from grader.simulation.mailboxes import Hub
from grader.simulation.network import PER_SECOND
from grader.simulation.requests import Request

__all__ = ["Tap", "Tapped"]

_PER_NANOSECOND = PER_SECOND // 10**9


class Tap:
    """Follows every message of a hub.

    Args:
        hub: whose ranks report.
        most: events after which it stops; a record that is not whole is none.

    Attributes:
        events: with their ranks, in the order in which they happened.
        full: whether it has stopped.
    """

    def __init__(self, hub: Hub, most: int) -> None:
        self._hub = hub
        hub.tap = self
        self._most = most
        self._numbers = [0] * hub.size
        self._latest = [-1] * hub.size
        self._undecided: list[tuple[int, int, Request]] = []
        self.events: list[tuple[int, Event | Matched]] = []
        self.full = False

    def entered(self) -> None:
        """The rank that runs is about to call its function."""
        self._report(Entered(self._now()))

    def left(self, raised: bool) -> None:
        """It has returned, or raised."""
        self._report(Left(raised, self._now()))

    def mark(self, text: str) -> None:
        """The rank that runs is at a named place."""
        self._report(Marked(text, self._now()))

    def grouped(self, name: str, members: list[int]) -> None:
        """The rank that runs is a member of a new group."""
        self._report(Grouped(name, members))

    def post(self, kind: str, tensor: torch.Tensor, peer: int, tag: int, group: str) -> int:
        """The rank that runs is about to post one end of a message; its number."""
        me = self._hub.current.number
        number, self._numbers[me] = self._numbers[me], self._numbers[me] + 1
        file, line, blocking = line_here()
        self._report(
            Posted(
                number, kind, peer, tag, group, tensor.numel(), tensor.nbytes,
                dtype_name(tensor.dtype), "", blocking, False, file, line, self._now(),
                tensor.untyped_storage().data_ptr(), int(tensor.storage_offset()),
            )
        )  # fmt: skip
        return number

    def follow(self, request: Request, number: int, peer: int) -> Tapped:
        """The request of a post, so that its end is reported as well."""
        if peer == ANY:
            self._undecided.append((request.rank.number, number, request))
        self._decide()
        return Tapped(self, request, number)

    def blocked(self, number: int) -> None:
        """The rank that runs waits for an operation."""
        file, line, _ = line_here()
        self._report(Blocked(number, file, line, self._now()))

    def done(self, number: int) -> None:
        """The rank that runs has seen an operation complete."""
        self._decide()
        self._report(Done(number, self._now()))

    def _decide(self) -> None:
        """Tell whose messages the receives from anybody have got."""
        left = []
        for rank, number, request in self._undecided:
            if request.peer == ANY:
                left.append((rank, number, request))
            else:
                self._add(rank, Matched(number, request.peer))
        self._undecided = left

    def _now(self) -> int:
        me = self._hub.current.number
        self._latest[me] = max(self._hub.now // _PER_NANOSECOND, self._latest[me] + 1)
        return self._latest[me]

    def _report(self, event: Event) -> None:
        self._add(self._hub.current.number, event)

    def _add(self, rank: int, event: Event | Matched) -> None:
        if len(self.events) < self._most:
            self.events.append((rank, event))
        else:
            self.full = True


class Tapped:
    """A request whose end is reported."""

    def __init__(self, tap: Tap, request: Request, number: int) -> None:
        self._tap, self._request, self._number = tap, request, number
        self._seen = False

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete."""
        if not self._seen:
            if not self._request.is_success():
                self._tap.blocked(self._number)
            self._request.wait(timeout)
            self._complete()
        return True

    def is_completed(self) -> bool:
        """Whether it is complete by now; whoever asks in a loop lets the others run."""
        if not self._request.is_completed():
            return False
        self._complete()
        return True

    def is_success(self) -> bool:
        """Whether it is complete."""
        return self._request.is_success()

    @property
    def peer(self) -> int:
        """The global rank at the other end."""
        return self._request.peer

    def source_rank(self) -> int:
        """The rank that a received message came from."""
        return self._request.peer

    _source_rank = source_rank

    def _complete(self) -> None:
        if not self._seen:
            self._seen = True
            self._tap.done(self._number)
