"""Links that carry many messages at a time, each with its max-min fair share.

What a message does on a port is as in :mod:`grader.simulation.network`; on the
links its bytes travel as fast as the shares allow.  Shares change whenever a
message begins or ends on a link, so nobody knows when a message will have
arrived before it has.  What is left of a message is an exact fraction; the
moment of its arrival is rounded up to a whole tick.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from fractions import Fraction

from grader.simulation.network import Places
from grader.simulation.sharing import fair_shares

__all__ = ["SharedLinks"]


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
