"""Simulated ranks, and the ends of messages between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import greenlet
import msgspec

from grader.core.events import WORLD

if TYPE_CHECKING:
    from grader.simulation.builtin import Work

__all__ = ["MessageMismatch", "Rank", "SimulatedRequest", "channel_of", "sort_of"]


class Rank:
    """A simulated rank.

    Attributes:
        number: the global rank.
        index: tells it apart from whatever else runs for the same rank.
        waits: what it waits for now, if it does.
        value: what its function has returned.
        error: what it has raised, if it has.
        ended: ticks when it had ended; ``None`` before.
    """

    __slots__ = ("begun", "ended", "error", "green", "index", "number", "switch", "value", "waits")

    def __init__(self, number: int, green: greenlet.greenlet) -> None:
        self.number = self.index = number
        self.green = green
        self.waits: SimulatedRequest | Work | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended: int | None = None
        self.begun = False
        self.switch = green.switch


class SimulatedRequest(msgspec.Struct, eq=False, gc=False):
    """One end of a message: what ``isend`` and ``irecv`` return.

    A struct, since one is made for every message, and a class of Python's takes
    three times as long.

    Attributes:
        rank: whose it is.
        kind: ``send`` or ``recv``.
        peer: the other rank; −1 for a receive from any that is not matched yet.
        tensor: the student's.
        done: ticks when it is complete; ``None`` before that is known.
        waiter: the rank that waits for it, if one does.
        order: its place among those that were posted before they were matched.
        place: where it was posted: code and instruction, or file and line.
        arrives: ticks when an eager message is there, whoever waits for it.
    """

    _world: Any
    rank: Any
    kind: str
    peer: int
    tensor: Any
    done: Any = None
    waiter: Any = None
    order: int = 0
    arrives: Any = None
    place: Any = None

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete, or ``timeout`` ends."""
        done, world = self.done, self._world
        if done is None or done > world.now:
            world.wait(self, timeout)
        world.open.pop(self, None)
        return True

    def is_completed(self) -> bool:
        """Whether it is complete by now; whoever asks in a loop lets the others run."""
        world = self._world
        if self.done is None or self.done > world.now:
            world.give_way(self)
        if self.done is None or self.done > world.now:
            return False
        world.open.pop(self, None)
        return True

    def is_success(self) -> bool:
        """Whether it is complete."""
        return self.done is not None and self.done <= self._world.now

    def source_rank(self) -> int:
        """The rank that a received message came from."""
        return self.peer

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Not in a simulation."""
        raise RuntimeError("a simulated request has no future; call wait() instead")


def channel_of(source: int, tag: int = 0, group: str = WORLD) -> Any:
    """What tells messages to a rank apart; the commonest is the cheapest."""
    return source if tag == 0 and group == WORLD else (source, tag, group)


def sort_of(channel: Any) -> Any:
    """A channel without its source, for those who take messages from anybody."""
    return channel[1:] if isinstance(channel, tuple) else (0, WORLD)


@dataclass(frozen=True)
class MessageMismatch:
    """The two ends of a message are of different sizes or types."""

    send: SimulatedRequest
    receive: SimulatedRequest
