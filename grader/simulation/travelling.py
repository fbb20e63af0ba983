"""Messages of which nobody knows yet when they will have arrived.

Most networks know it as soon as a message has both its ends.  Those that do not
are asked here, and only as far as the clock can go before some rank runs again:
what that rank sends may change everything that comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from grader.simulation.network import Network, Undecided
from grader.simulation.requests import Rank, Request

__all__ = ["Travelling"]


class Travelling:
    """What is on its way in an undecided network.

    Args:
        network: that carries it.
        moments: at which some rank may go on, the next one first.
        at: lets a rank go on at a moment.
        stop_at: lets the clock stop at one, for those who poll.

    Attributes:
        ends: both ends of each message, by its number.
    """

    def __init__(
        self,
        network: Network,
        moments: Sequence[int],
        at: Callable[[int, Rank], None],
        stop_at: Callable[[int], None],
    ) -> None:
        self._moments, self._at, self._stop_at = moments, at, stop_at
        # it is asked only if a message was undecided
        self._network = cast(Undecided, network)
        self._added = 0
        self.ends: dict[int, tuple[Request, Request]] = {}

    def add(self, send: Request, receive: Request) -> Request:
        """A message was carried; its receiving end."""
        self.ends[self._added] = send, receive
        self._added += 1
        return receive

    def go_on(self) -> None:
        """Let messages arrive until a rank may go on at the next moment of the clock."""
        network, moments = self._network, self._moments
        while self.ends:
            moment = network.following()
            if moments and moments[0] < moment:
                return
            for number in network.arrived(moment):
                for end in self.ends.pop(number):
                    end.done = moment
                    if end.waiter is not None:
                        self._at(moment, end.waiter)
                self._stop_at(moment)
