"""Networks: which messages wait for each other, and when they arrive.

Every rank has one port to send and one to receive (full duplex), and a message occupies both from
its start until it has arrived.  Between nodes there are links.  A message of S bytes uses them in
two ways:

- Its latency α is its own.  It passes before the first byte is on a link, so that the latencies
  of several messages may overlap.
- Each of its S bytes takes β on the link out of the sender's node and, at the same time, on the
  link into the receiver's.

Ports, and links that carry one message at a time, serve messages in the order in which these had
both their ends; of messages of one moment, each rank's first post comes before its second
(``SimulatedWorld._assign``).  No message overtakes: one that waits for a port or a link holds up
those behind it at every other.  Sums are of whole ticks, and exact.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol, TypeVar

__all__ = [
    "Network",
    "NodePorts",
    "PER_SECOND",
    "Places",
    "Ports",
    "SharedLinks",
    "fair_shares",
    "seconds_of",
    "ticks_of",
]


# Virtual time: whole ticks, so that sums are exact and runs are the same to the bit. ----

#: A tick is 10⁻²¹ s: a byte at 1 TB/s takes a billion of them.
PER_SECOND = 10**21


def ticks_of(seconds: float) -> int:
    """Return a time, such as ``2.5e-6`` s, in ticks."""
    # the decimal that was written, and not the binary fraction next to it
    return int((Decimal(repr(seconds)) * PER_SECOND).to_integral_value())


def seconds_of(ticks: int) -> float:
    """Return a number of ticks in seconds, rounded once."""
    return ticks / PER_SECOND


# Max-min fair shares of links. ----------------------------------------------------
#
# Shares are max-min fair if none can grow without shrinking another that is no larger.  There is
# exactly one such assignment.  Progressive filling finds it: all shares grow alike from zero
# until some link is full; the flows on that link keep their shares, and the others grow on
# (Bertsekas & Gallager, *Data Networks*, 2nd edition, 1992, section 6.5.2).  On real networks,
# long transfers that share bottlenecks get about these shares, which is why network simulators
# use them (Casanova et al., *Versatile, scalable, and accurate simulation of distributed
# applications and platforms*, 2014, https://doi.org/10.1016/j.jpdc.2014.06.008).

L = TypeVar("L", bound=Hashable)


def fair_shares(
    paths: Sequence[Sequence[L]], capacities: Mapping[L, int | Fraction]
) -> list[Fraction]:
    """Return the max-min fair share of each flow, exactly.

    Args:
        paths: for each flow, the links that it uses, each once and at least one.
        capacities: the capacity of each link.
    """
    shares: list[Fraction | None] = [None] * len(paths)
    users: dict[L, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            users.setdefault(link, []).append(flow)
    links = list(users)
    left = {link: Fraction(capacities[link]) for link in links}
    growing = {link: len(flows) for link, flows in users.items()}
    # the share at which a link is full can only rise, so it is computed again when the link
    # comes first in the heap, and not whenever it rises
    levels = [(left[link] / growing[link], place) for place, link in enumerate(links)]
    heapq.heapify(levels)
    while levels:
        level, place = heapq.heappop(levels)
        link = links[place]
        if not growing[link]:
            continue
        risen = left[link] / growing[link]
        if risen > level:
            heapq.heappush(levels, (risen, place))
            continue
        for flow in users[link]:
            if shares[flow] is None:
                shares[flow] = level
                for other in paths[flow]:
                    left[other] -= level
                    growing[other] -= 1
    return [share for share in shares if share is not None]


# Ports: one message at a time. ----------------------------------------------------


class Network(Protocol):
    """A network of one simulation.

    It knows when a message will arrive either as soon as the message can travel, or only when
    the message has arrived; see :class:`Undecided`.
    """

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int | None:
        """Take a message that can travel from tick ``now`` on, and return when it arrives.

        ``None`` means that its arrival depends on messages that are still to come.
        """
        ...


class Undecided(Network, Protocol):
    """A network that does not know in advance when a message will arrive.

    Its messages are numbered from 0, in the order in which they were carried.
    """

    def following(self) -> int:
        """Return the next moment at which anything happens; some message must be on its way."""
        ...

    def arrived(self, moment: int) -> list[int]:
        """Advance to that moment, and return the numbers of the messages that arrive at it."""
        ...


@dataclass(frozen=True)
class Places:
    """The node of each rank, and the link of the node that it uses, in both directions."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]


class Ports:
    """A network with one port to send and one to receive for each rank, and one α and β.

    Args:
        size: number of ranks.
        alpha, beta: latency in ticks, and ticks per byte.
    """

    def __init__(self, size: int, alpha: int, beta: int) -> None:
        self._alpha, self._beta = alpha, beta
        self._sending = [0] * size
        self._receiving = [0] * size

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int:
        """Return when a message arrives; its ports are occupied until then."""
        # comparisons, since this runs for every message and max() takes twice as long
        if self._sending[source] > now:
            now = self._sending[source]
        if self._receiving[destination] > now:
            now = self._receiving[destination]
        arrival = now + self._alpha + nbytes * self._beta
        self._sending[source] = self._receiving[destination] = arrival
        return arrival


class NodePorts:
    """A network of nodes whose links carry one message at a time in each direction.

    Args:
        places: where the ranks are.
        inside, between: α and β inside a node and between nodes, in ticks and ticks per byte.
    """

    def __init__(self, places: Places, inside: tuple[int, int], between: tuple[int, int]) -> None:
        self._nodes, self._links = places.nodes, places.links
        self._inside, self._between = inside, between
        #: by rank or by link, the tick until which each is occupied
        self._sending = [0] * len(places.nodes)
        self._receiving = [0] * len(places.nodes)
        self._out = [0] * (max(places.links, default=-1) + 1)
        self._in = [0] * len(self._out)

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> int:
        """Return when a message arrives; its ports and links are occupied until then."""
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


# Links that carry many messages at a time, each with its max-min fair share. ------
#
# Ports work as above; on the links, the bytes of a message travel as fast as its share allows.
# Shares change whenever a message begins or ends on a link, so the arrival of a message is not
# known in advance.  The rest of a message is an exact fraction; the moment of its arrival is
# rounded up to a whole tick.


class _Message:
    """A message between its posting and its arrival.

    Attributes:
        path: the links that it uses; none inside a node.
        latency: ticks until its first byte is on the links.
        left: ticks that it would still need with its links to itself.
        share: its share of its links since tick ``since``; 0 before it is on them.
        version: how often its next moment has been computed.
    """

    __slots__ = (
        "destination", "latency", "left", "number", "path", "share", "since", "source", "version",
    )  # fmt: skip

    def __init__(
        self, number: int, ends: tuple[int, int], path: tuple[int, ...], latency: int, work: int
    ) -> None:
        self.number = number
        self.source, self.destination = ends
        self.path = path
        self.latency = latency
        self.left = Fraction(work)
        self.share = Fraction(0)
        self.since = 0
        self.version = 0


class SharedLinks:
    """A network of nodes whose links carry any number of messages at a time.

    Args:
        places: where the ranks are.
        inside, between: α and β inside a node and between nodes, in ticks and ticks per byte.
    """

    def __init__(self, places: Places, inside: tuple[int, int], between: tuple[int, int]) -> None:
        self._nodes, self._links = places.nodes, places.links
        self._inside, self._between = inside, between
        self._carried = 0
        #: by rank, the messages of a port; the first of them travels
        self._sending: list[deque[_Message]] = [deque() for _ in places.nodes]
        self._receiving: list[deque[_Message]] = [deque() for _ in places.nodes]
        #: by link, first those out of nodes, then those into them: the messages on it, by number
        count = max(places.links, default=-1) + 1
        self._into = count
        self._on: list[dict[int, _Message]] = [{} for _ in range(2 * count)]
        #: a heap of what happens next; entries of an older version of a message are void
        self._moments: list[tuple[int, int, int, _Message]] = []
        self._changed: set[int] = set()

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> None:
        """Take a message that can travel; :meth:`arrived` returns its number when it arrives."""
        if self._nodes[source] == self._nodes[destination]:
            alpha, beta = self._inside
            # messages inside a node share no link
            path: tuple[int, ...] = ()
            latency, work = alpha + nbytes * beta, 0
        else:
            alpha, beta = self._between
            path = (self._links[source], self._into + self._links[destination])
            latency, work = alpha, nbytes * beta
        message = _Message(self._carried, (source, destination), path, latency, work)
        self._carried += 1
        self._sending[source].append(message)
        self._receiving[destination].append(message)
        self._begin(message, now)

    def following(self) -> int:
        """Return the next moment at which anything happens; some message must be on its way."""
        while (entry := self._moments[0])[2] != entry[3].version:
            heapq.heappop(self._moments)
        return entry[0]

    def arrived(self, moment: int) -> list[int]:
        """Advance to that moment, and return the numbers of the messages that arrive at it."""
        found = []
        while self._moments and self._moments[0][0] == moment:
            _, _, version, message = heapq.heappop(self._moments)
            if version != message.version:
                continue
            if message.left and not message.share:
                self._enter(message, moment)
            else:
                found.append(message.number)
                self._leave(message, moment)
        if self._changed:
            self._share(moment)
        return found

    def _begin(self, message: _Message, now: int) -> None:
        """Start a message if it is the first at both its ports."""
        sending = self._sending[message.source]
        receiving = self._receiving[message.destination]
        if sending[0] is message and receiving[0] is message:
            self._foresee(message, now + message.latency)

    def _foresee(self, message: _Message, moment: int) -> None:
        message.version += 1
        heapq.heappush(self._moments, (moment, message.number, message.version, message))

    def _enter(self, message: _Message, moment: int) -> None:
        """Put a message on its links."""
        message.since = moment
        for link in message.path:
            self._on[link][message.number] = message
        self._changed.update(message.path)

    def _leave(self, message: _Message, moment: int) -> None:
        """Take an arrived message off its links and ports, and start those behind it."""
        if message.share:
            for link in message.path:
                del self._on[link][message.number]
            self._changed.update(message.path)
        sending = self._sending[message.source]
        receiving = self._receiving[message.destination]
        sending.popleft()
        receiving.popleft()
        if sending:
            self._begin(sending[0], moment)
        # if both are the same message, the second call makes the first entry void
        if receiving:
            self._begin(receiving[0], moment)

    def _share(self, moment: int) -> None:
        """Compute the shares of all messages whose share may have changed."""
        touched = sorted(self._connected().items())
        messages = [message for _, message in touched]
        capacities = {link: 1 for message in messages for link in message.path}
        shares = fair_shares([message.path for message in messages], capacities)
        for message, share in zip(messages, shares, strict=True):
            if share == message.share:
                continue
            message.left -= message.share * (moment - message.since)
            message.share, message.since = share, moment
            self._foresee(message, moment + math.ceil(message.left / share))

    def _connected(self) -> dict[int, _Message]:
        """Return the messages on changed links, and all that share links with them in turn."""
        links = list(self._changed)
        found: dict[int, _Message] = {}
        seen = self._changed
        while links:
            for number, message in self._on[links.pop()].items():
                found[number] = message
                for link in message.path:
                    if link not in seen:
                        seen.add(link)
                        links.append(link)
        self._changed = set()
        return found
