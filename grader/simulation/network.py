"""How long a message takes, and which messages have to wait for each other.

The model is α–β (Hockney, *The communication challenge for MPP: Intel Paragon
and Meiko CS-2*, 1994): a message of S bytes takes α + S·β.  Every rank has one
port to send and one to receive (full duplex), and a message holds both for that
time.  Ports serve messages in the order in which these became able to travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from grader.errors import RequestError
from grader.simulation.clock import ticks_of

__all__ = ["Flat", "Network", "Ports"]


class Network(Protocol):
    """What the messages of one simulation travel through."""

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int:
        """When a message has arrived that can travel from ``now`` on, in ticks."""
        ...


@dataclass(frozen=True)
class Flat:
    """A cluster in which every pair of ranks is connected alike.

    Attributes:
        alpha: seconds that a message of no bytes takes.
        beta: seconds that each byte adds.
    """

    alpha: float = 1e-6
    beta: float = 1e-10

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 <= value < 1e9:
                raise RequestError(f"{name} is a time in seconds, at least 0; not {value}")

    def network(self, size: int) -> Network:
        """Its network for ``size`` ranks, with nothing in it yet."""
        return Ports(size, ticks_of(self.alpha), ticks_of(self.beta))


class Ports:
    """One port to send and one to receive for each rank; the same α and β for all pairs.

    Args:
        size: how many ranks.
        alpha, beta: in ticks, and ticks per byte.
    """

    def __init__(self, size: int, alpha: int, beta: int) -> None:
        self._alpha, self._beta = alpha, beta
        self._sending = [0] * size
        self._receiving = [0] * size

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int:
        """When the message has arrived; its ports are taken until then."""
        # comparisons, since this is done for every message and max() takes twice as long
        if self._sending[source] > now:
            now = self._sending[source]
        if self._receiving[destination] > now:
            now = self._receiving[destination]
        arrival = now + self._alpha + nbytes * self._beta
        self._sending[source] = self._receiving[destination] = arrival
        return arrival
