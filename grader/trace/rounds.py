"""A record replayed in unit time: how many rounds an algorithm takes.

Every message takes one unit of time.  A rank has one port to send and one to
receive (full duplex), and computing takes no time.  Each rank runs its
program: a post puts a message in its port's queue, a wait holds the rank until
that message has arrived.  A message can travel once both ends are posted.  A
sending port takes the messages that can travel in the order of their posts and
holds on to the first until the other end is free; a receiving port takes, of
those that ask for it, the one whose receive was posted first.

So a flat broadcast takes n − 1 rounds, a binomial one ⌈log₂ n⌉, and an
all-to-all in which everybody writes to rank 0 first takes more rounds than one
whose peers rotate.  This is the single-port, full-duplex model of Thakur,
Rabenseifner and Gropp, *Optimization of Collective Communication Operations in
MPICH* (2005), section 3, with α + nβ = 1 for every message.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Step", "replay"]

#: A message, named by its send: rank and number of the operation.
Key = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One step of a rank's program: ``post`` or ``wait``, for one end of a message."""

    action: str
    end: str
    message: Key


def replay(programs: Sequence[Sequence[Step]]) -> dict[Key, int]:
    """The unit of time, from 0, in which each message travels.

    Args:
        programs: for each rank its posts and waits in order; every message has
            both of its posts somewhere in them.
    """
    return _Replay(programs).run()


class _Replay:
    """The state of a replay; a place is where in its rank's program a post stands."""

    def __init__(self, programs: Sequence[Sequence[Step]]) -> None:
        self.programs = programs
        self.position = [0] * len(programs)
        self.posted: dict[Key, dict[str, tuple[int, int]]] = {}
        self.start: dict[Key, int] = {}
        #: by sending rank, the messages that can travel, first posted first
        self.ready: dict[int, list[tuple[int, Key]]] = {}

    def run(self) -> dict[Key, int]:
        now = 0
        while True:
            for rank in range(len(self.programs)):
                self._advance(rank, now)
            chosen = self._choose()
            if not chosen:
                return self.start
            for sender, message in chosen:
                heapq.heappop(self.ready[sender])
                self.start[message] = now
            now += 1

    def _advance(self, rank: int, now: int) -> None:
        """Let a rank run until it waits for a message that has not arrived by ``now``."""
        program = self.programs[rank]
        while self.position[rank] < len(program):
            place = self.position[rank]
            step = program[place]
            if step.action == "wait":
                if self.start.get(step.message, now) >= now:
                    return
            else:
                ends = self.posted.setdefault(step.message, {})
                ends[step.end] = (rank, place)
                if len(ends) == 2:
                    sender, order = ends["send"]
                    heapq.heappush(self.ready.setdefault(sender, []), (order, step.message))
            self.position[rank] += 1

    def _choose(self) -> list[tuple[int, Key]]:
        """The messages that travel in this unit of time, with their senders."""
        taken: dict[int, tuple[int, int, Key]] = {}
        for sender, queue in self.ready.items():
            if not queue:
                continue
            message = queue[0][1]
            receiver, place = self.posted[message]["recv"]
            if receiver not in taken or place < taken[receiver][0]:
                taken[receiver] = (place, sender, message)
        return [(sender, message) for _, sender, message in taken.values()]
