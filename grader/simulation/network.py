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
    """A time as written, such as ``2.5e-6``, in ticks."""
    # what was written, and not the binary fraction next to it
    return int((Decimal(repr(seconds)) * PER_SECOND).to_integral_value())


def seconds_of(ticks: int) -> float:
    """A number of ticks in seconds, rounded once."""
    return ticks / PER_SECOND


# Max-min fair shares of links. ----------------------------------------------------
#
# Shares are fair in this sense if none can grow without another shrinking that is
# no larger.  There is exactly one such choice.  It is found by filling: all grow
# alike from zero until some link is full; those who use it stay as they are, the
# others grow on (Bertsekas & Gallager, *Data Networks*, 2nd edition, 1992, section
# 6.5.2).  What long transfers that share bottlenecks get on real networks is near
# to it, which is why simulators of networks use it (Casanova et al., *Versatile,
# scalable, and accurate simulation of distributed applications and platforms*,
# 2014, https://doi.org/10.1016/j.jpdc.2014.06.008).

L = TypeVar("L", bound=Hashable)


def fair_shares(
    paths: Sequence[Sequence[L]], capacities: Mapping[L, int | Fraction]
) -> list[Fraction]:
    """The max-min fair share of each flow, exactly.

    Args:
        paths: for each flow the links that it uses, each once, and at least one.
        capacities: of the links.
    """
    shares: list[Fraction | None] = [None] * len(paths)
    users: dict[L, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            users.setdefault(link, []).append(flow)
    links = list(users)
    left = {link: Fraction(capacities[link]) for link in links}
    growing = {link: len(flows) for link, flows in users.items()}
    # where the water stands when a link is full; that can only rise, so it is
    # looked at again when a link's turn comes, and not whenever it rises
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


# Links that carry many messages at a time, each with its max-min fair share. ------
#
# What a message does on a port is as in :mod:`grader.simulation.network`; on the
# links its bytes travel as fast as the shares allow.  Shares change whenever a
# message begins or ends on a link, so nobody knows when a message will have
# arrived before it has.  What is left of a message is an exact fraction; the
# moment of its arrival is rounded up to a whole tick.


class _Message:
    """A message between its posting and its arrival.

    Attributes:
        path: the links that it uses, none inside a node.
        latency: ticks until its first byte is on the links.
        left: ticks that it still needs if it is alone there.
        share: of its links, since ``since``; 0 before it is on them.
        version: counts the times that its next moment was foreseen.
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
    """Ranks on nodes, whose links carry any number of messages at a time.

    Args:
        places: where the ranks are.
        inside, between: α and β of a node and of the links, in ticks, and ticks per byte.
    """

    def __init__(self, places: Places, inside: tuple[int, int], between: tuple[int, int]) -> None:
        self._nodes, self._links = places.nodes, places.links
        self._inside, self._between = inside, between
        self._carried = 0
        #: by rank, the messages of a port, the one that travels first
        self._sending: list[deque[_Message]] = [deque() for _ in places.nodes]
        self._receiving: list[deque[_Message]] = [deque() for _ in places.nodes]
        #: by link, those out of nodes before those into them: messages on it, by number
        count = max(places.links, default=-1) + 1
        self._into = count
        self._on: list[dict[int, _Message]] = [{} for _ in range(2 * count)]
        #: what happens next, at most once for a message; of other versions no longer
        self._moments: list[tuple[int, int, int, _Message]] = []
        self._changed: set[int] = set()

    def carry(self, now: int, source: int, destination: int, nbytes: int) -> None:
        """Take a message that can travel; :meth:`arrived` will say when it has."""
        if self._nodes[source] == self._nodes[destination]:
            alpha, beta = self._inside
            # it takes that time whatever others do
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
        """The next moment at which anything happens; some message is on its way."""
        while (entry := self._moments[0])[2] != entry[3].version:
            heapq.heappop(self._moments)
        return entry[0]

    def arrived(self, moment: int) -> list[int]:
        """Go on to the next moment at which anything happens; what arrives at it."""
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
        """Let a message begin if it is the first of both its ports."""
        sending = self._sending[message.source]
        receiving = self._receiving[message.destination]
        if sending[0] is message and receiving[0] is message:
            self._foresee(message, now + message.latency)

    def _foresee(self, message: _Message, moment: int) -> None:
        message.version += 1
        heapq.heappush(self._moments, (moment, message.number, message.version, message))

    def _enter(self, message: _Message, moment: int) -> None:
        """Its first byte is on the links."""
        message.since = moment
        for link in message.path:
            self._on[link][message.number] = message
        self._changed.update(message.path)

    def _leave(self, message: _Message, moment: int) -> None:
        """It has arrived, and makes room on its links and ports."""
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
        # if it is the same one, that is foreseen twice, and happens once
        if receiving:
            self._begin(receiving[0], moment)

    def _share(self, moment: int) -> None:
        """Share the links anew among all whose share may have changed."""
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
        """The messages that share a link, over however many others, with a changed one."""
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
