"""Which messages have to wait for each other, and when they have arrived.

Every rank has one port to send and one to receive (full duplex), and a message
holds both from its begin until it has arrived.  Between nodes there are links.
What a message of S bytes does there depends on what it is alone on:

- its latency α is its own.  It passes before the first byte is on the link, so
  those of several messages may pass at the same time;
- its S bytes need β each on the link out of the sender's node and on the link
  into the receiver's, on both at the same time.

Ports, and links of which each carries one message at a time, serve messages in
the order in which these became able to travel, that is, had both their ends; of
those of one moment, each rank's first post before its second (``Hub._assign``).
Nothing overtakes: a message that waits for one thing makes those wait that come
after it at any other.  Sums are of whole ticks, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Network", "NodePorts", "Places", "Ports"]


class Network(Protocol):
    """What the messages of one simulation travel through.

    Either it knows when a message will have arrived as soon as that can travel,
    or never before the message has arrived; see :class:`Undecided`.
    """

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int | None:
        """When a message has arrived that can travel from ``now`` on, in ticks.

        ``None`` if that depends on messages that are still to come.
        """
        ...


class Undecided(Network, Protocol):
    """A network that does not know when a message will have arrived.

    Its messages are numbered from 0, in the order in which they were carried.
    """

    def following(self) -> int:
        """The next moment at which anything happens in it; some message is on its way."""
        ...

    def arrived(self, moment: int) -> list[int]:
        """Go on to the next moment at which anything happens; what arrives at it."""
        ...


@dataclass(frozen=True)
class Places:
    """Where ranks are: the node of each, and the link that it uses, both ways."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]


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


class NodePorts:
    """Ranks on nodes, whose links carry one message at a time in each direction.

    Args:
        places: where the ranks are.
        inside, between: α and β of a node and of the links, in ticks, and ticks per byte.
    """

    def __init__(self, places: Places, inside: tuple[int, int], between: tuple[int, int]) -> None:
        self._nodes, self._links = places.nodes, places.links
        self._inside, self._between = inside, between
        #: by rank or by link, until when each is taken
        self._sending = [0] * len(places.nodes)
        self._receiving = [0] * len(places.nodes)
        self._out = [0] * (max(places.links, default=-1) + 1)
        self._in = [0] * len(self._out)

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int:
        """When the message has arrived; its ports and links are taken until then."""
        begin = max(now, self._sending[source], self._receiving[destination])
        if self._nodes[source] == self._nodes[destination]:
            alpha, beta = self._inside
            arrival = begin + alpha + nbytes * beta
        else:
            alpha, beta = self._between
            out, into = self._links[source], self._links[destination]
            arrival = max(begin + alpha, self._out[out], self._in[into]) + nbytes * beta
            self._out[out] = self._in[into] = arrival
        self._sending[source] = self._receiving[destination] = arrival
        return arrival
