"""The trace of a simulated run, of the same events that a real rank reports.

Times are in nanoseconds, as a real rank's are, but of virtual time.  Computing takes none of it,
so that many events happen at one moment; to keep a rank's events in order, each is at least a
nanosecond after the one before.
"""

from __future__ import annotations

from typing import Any

import torch

from grader.core.events import (
    ANY,
    Blocked,
    Completed,
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
from grader.simulation.network import PER_SECOND
from grader.simulation.scheduler import SimulatedRequest
from grader.simulation.world import SimulatedWorld

__all__ = ["TraceRecorder", "RecordedRequest"]

_PER_NANOSECOND = PER_SECOND // 10**9


class TraceRecorder:
    """Records the events of a simulated world.

    Args:
        world: the simulated world.
        most: number of events after which it stops; an incomplete trace is not used.

    Attributes:
        events: the events with their ranks, in the order in which they happened.
        full: whether it has stopped.
    """

    def __init__(self, world: SimulatedWorld, most: int) -> None:
        self._world = world
        world.recorder = self
        self._most = most
        self._numbers = [0] * world.size
        self._latest = [-1] * world.size
        self._undecided: list[tuple[int, int, SimulatedRequest]] = []
        self.events: list[tuple[int, Event | Matched]] = []
        self.full = False

    def entered(self) -> None:
        """Record that the running rank is about to call its function."""
        self._report(Entered(self._now()))

    def left(self, raised: bool) -> None:
        """Record that the function of the running rank has returned, or raised."""
        self._report(Left(raised, self._now()))

    def mark(self, text: str) -> None:
        """Record that the running rank is at a named place."""
        self._report(Marked(text, self._now()))

    def grouped(self, name: str, members: list[int]) -> None:
        """Record that the running rank is a member of a new group."""
        self._report(Grouped(name, members))

    def post(self, kind: str, tensor: torch.Tensor, peer: int, tag: int, group: str) -> int:
        """Record that the running rank posts one end of a message, and return its number."""
        me = self._world.current.number
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

    def follow(self, request: SimulatedRequest, number: int, peer: int) -> RecordedRequest:
        """Wrap the request of a post, so that its completion is recorded too."""
        if peer == ANY:
            self._undecided.append((request.rank.number, number, request))
        self._decide()
        return RecordedRequest(self, request, number)

    def blocked(self, number: int) -> None:
        """Record that the running rank waits for an operation."""
        file, line, _ = line_here()
        self._report(Blocked(number, file, line, self._now()))

    def done(self, number: int) -> None:
        """Record that the running rank has seen an operation complete."""
        self._decide()
        self._report(Completed(number, self._now()))

    def _decide(self) -> None:
        """Record which messages the wildcard receives have matched."""
        left = []
        for rank, number, request in self._undecided:
            if request.peer == ANY:
                left.append((rank, number, request))
            else:
                self._add(rank, Matched(number, request.peer))
        self._undecided = left

    def _now(self) -> int:
        me = self._world.current.number
        self._latest[me] = max(self._world.now // _PER_NANOSECOND, self._latest[me] + 1)
        return self._latest[me]

    def _report(self, event: Event) -> None:
        self._add(self._world.current.number, event)

    def _add(self, rank: int, event: Event | Matched) -> None:
        if len(self.events) < self._most:
            self.events.append((rank, event))
        else:
            self.full = True


class RecordedRequest:
    """A request whose completion is recorded."""

    def __init__(self, recorder: TraceRecorder, request: SimulatedRequest, number: int) -> None:
        self._recorder, self._request, self._number = recorder, request, number
        self._seen = False

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete.

        Raises:
            RuntimeError: ``timeout`` ended first.
        """
        if not self._seen:
            if not self._request.is_success():
                self._recorder.blocked(self._number)
            self._request.wait(timeout)
            self._complete()
        return True

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        if not self._request.is_completed():
            return False
        self._complete()
        return True

    def is_success(self) -> bool:
        """Return whether it is complete."""
        return self._request.is_success()

    @property
    def peer(self) -> int:
        """The global rank at the other end."""
        return self._request.peer

    def source_rank(self) -> int:
        """Return the rank that a received message came from."""
        return self._request.peer

    _source_rank = source_rank

    def _complete(self) -> None:
        if not self._seen:
            self._seen = True
            self._recorder.done(self._number)
