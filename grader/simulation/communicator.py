"""What an algorithm sees of its group: who it is, and messages to the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from grader.simulation.requests import SimulatedRequest
    from grader.simulation.trace_recorder import RecordedRequest
    from grader.simulation.world import SimulatedWorld

__all__ = ["Communicator", "channel_name", "is_channel", "wait_all"]

_CHANNEL = "collectives of "


def channel_name(group: str) -> str:
    """Where the messages of a group's collectives travel."""
    return _CHANNEL + group


def is_channel(name: str) -> bool:
    """Whether a channel is one of collectives: no group has such a name."""
    return name.startswith(_CHANNEL)


class Communicator:
    """One rank's way to the others of its group, for one collective call.

    Its messages travel on a channel of their own, so none of a student's is ever
    taken for one of them.  For a collective with a root, the ranks are counted
    from there: the root is rank 0.

    Args:
        world: where the ranks live.
        members: global ranks, by rank here.
        rank: whose it is, by rank here.
        name: of the channel.
    """

    __slots__ = ("_members", "_mine", "_name", "_world", "rank", "size")

    def __init__(self, world: SimulatedWorld, members: Sequence[int], rank: int, name: str) -> None:
        self.rank = rank
        self.size = len(members)
        self._world = world
        self._members = members
        self._name = name
        self._mine = (members[rank], 0, name)

    def isend(self, tensor: torch.Tensor, to: int) -> SimulatedRequest | RecordedRequest:
        """Begin to send a flat tensor."""
        world, member = self._world, self._members[to]
        if world.recorder is None:
            return world.post_send(tensor, member, self._mine)
        number = world.recorder.post("send", tensor, member, 0, self._name)
        return world.recorder.follow(world.post_send(tensor, member, self._mine), number, member)

    def irecv(self, tensor: torch.Tensor, source: int) -> SimulatedRequest | RecordedRequest:
        """Begin to receive into a flat tensor."""
        world, member = self._world, self._members[source]
        channel = (member, 0, self._name)
        if world.recorder is None:
            return world.post_receive(tensor, member, channel)
        number = world.recorder.post("recv", tensor, member, 0, self._name)
        return world.recorder.follow(world.post_receive(tensor, member, channel), number, member)

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a flat tensor."""
        self.isend(tensor, to).wait()

    def recv(self, tensor: torch.Tensor, source: int) -> None:
        """Receive into a flat tensor."""
        self.irecv(tensor, source).wait()

    def exchange(
        self, outgoing: torch.Tensor, to: int, incoming: torch.Tensor, source: int
    ) -> None:
        """Send one tensor and receive another, at the same time."""
        request = self.isend(outgoing, to)
        self.recv(incoming, source)
        request.wait()


def wait_all(requests: Iterable[SimulatedRequest | RecordedRequest]) -> None:
    """Wait until all of them are complete."""
    for request in requests:
        request.wait()
