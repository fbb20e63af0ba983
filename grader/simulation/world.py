"""The messages of simulated ranks, on the clock of :mod:`grader.simulation.scheduler`.

A message needs both its ends, as in a real world: a send waits for its receive (synchronous),
unless it is short enough to leave its buffer at once (eager).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import memmove
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import increment_version

from grader.core.events import ANY, WORLD
from grader.core.wire import Tally
from grader.simulation.network import Network
from grader.simulation.scheduler import Scheduler, SimulatedRequest

if TYPE_CHECKING:
    from grader.simulation.trace_recorder import TraceRecorder

__all__ = ["MessageCounter", "MessageMismatch", "SimulatedWorld", "channel_of", "sort_of"]


# Counts of messages, for exercises that are judged by no more than these. ---------


class MessageCounter:
    """Counts of the messages, elements and bytes that ranks have sent.

    Args:
        size: number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._messages = 0
        self._elements = [0] * size
        self._bytes = [0] * size
        self._strangers = 0

    def note(self, source: int, destination: int, tensor: torch.Tensor) -> None:
        """Count a message that has both its ends."""
        self._messages += 1
        self._elements[source] += tensor.numel()
        self._bytes[source] += tensor.nbytes
        if (destination - source) % self._size not in (1, self._size - 1):
            self._strangers += 1

    def tally(self) -> Tally:
        """Return the counts."""
        return Tally(self._messages, self._bytes, self._elements, self._strangers)


# Channels and messages. ------------------------------------------------------------


def channel_of(source: int, tag: int = 0, group: str = WORLD) -> Any:
    """Return the key of messages from a rank with a tag in a group, for the table of a receiver.

    For tag 0 in the default group it is the bare rank, which is the cheapest to look up.
    """
    return source if tag == 0 and group == WORLD else (source, tag, group)


def sort_of(channel: Any) -> tuple[int, str]:
    """Return the tag and the group of a channel, which wildcard receives match by."""
    return channel[1:] if isinstance(channel, tuple) else (0, WORLD)


@dataclass(frozen=True)
class MessageMismatch:
    """A message whose two ends differ in size or dtype."""

    send: SimulatedRequest
    receive: SimulatedRequest


# The world. -------------------------------------------------------------------------


class SimulatedWorld(Scheduler):
    """Ranks that send each other messages.

    Args:
        functions: one per rank, called without arguments.
        network: the network that carries their messages.
        eager: bytes up to which a message leaves its buffer at once, before its receive is
            posted; with −1 none does.
        ledger: counts the messages, if that is wanted.

    Attributes:
        bytes: number of bytes sent and received so far.
        order: number of ends of messages that were posted before their other end.
        carry: the network's method of that name.
        recorder: records every message, if a trace is wanted.
        open: requests that no rank has seen complete, in the order of their posts.
        misfits: messages whose ends differ in size or dtype.
        sending, receiving: by rank, how many ends of messages wait for their other end.
        sends, receives: by destination and channel, the requests that wait for their other end.
        wildcards: by destination, the wildcard receives that wait, each after its tag and group.
    """

    def __init__(
        self,
        functions: Sequence[Callable[[], Any]],
        network: Network,
        eager: int = -1,
        ledger: MessageCounter | None = None,
    ) -> None:
        super().__init__(functions, network)
        self.bytes = 0
        self.order = 0
        self.eager = eager
        self.ledger = ledger
        self.recorder: TraceRecorder | None = None
        self.open: dict[SimulatedRequest, None] = {}
        self.misfits: list[MessageMismatch] = []
        self.carry = network.carry
        self.sending = [0] * self.size
        self.receiving = [0] * self.size
        self.sends: list[dict[Any, list[SimulatedRequest]]] = [{} for _ in functions]
        self.receives: list[dict[Any, list[SimulatedRequest]]] = [{} for _ in functions]
        self.wildcards: list[list[tuple[Any, SimulatedRequest]]] = [[] for _ in functions]

    def post_send(self, tensor: torch.Tensor, destination: int, channel: Any) -> SimulatedRequest:
        """Post a send from the current rank, and return its request."""
        request = SimulatedRequest(self, self.current, "send", destination, tensor)
        if tensor.nbytes <= self.eager:
            self._leave(request)
        receive = self.taker(destination, channel)
        if receive is not None:
            self.receiving[destination] -= 1
            self.deliver(request, receive)
        else:
            self.sending[self.current.number] += 1
            self._enqueue(self.sends[destination], channel, request)
        return request

    def _leave(self, send: SimulatedRequest) -> None:
        """Start an eager message from a copy, so that its buffer may be used again."""
        tensor = send.tensor
        send.tensor = tensor.detach().clone()
        send.done = self.now
        send.arrives = self.carry(self.now, send.rank.number, send.peer, tensor.nbytes)

    def taker(self, destination: int, channel: Any) -> SimulatedRequest | None:
        """Return the receive that takes a message on a channel: the first posted, or ``None``."""
        waiting = self.receives[destination].get(channel)
        wildcards = self.wildcards[destination]
        if wildcards:
            wanted = sort_of(channel)
            for place, (sort, request) in enumerate(wildcards):
                if sort == wanted:
                    if waiting and waiting[0].order < request.order:
                        break
                    del wildcards[place]
                    return request
        return waiting.pop(0) if waiting else None

    def post_receive(self, tensor: torch.Tensor, source: int, channel: Any) -> SimulatedRequest:
        """Post a receive into a tensor of the current rank, and return its request."""
        me = self.current
        request = SimulatedRequest(self, me, "recv", source, tensor)
        sent = self.sends[me.number].get(channel)
        if sent:
            self._deliver_sent(sent.pop(0), request)
        else:
            self.receiving[me.number] += 1
            self._enqueue(self.receives[me.number], channel, request)
        return request

    def post_wildcard_receive(self, tensor: torch.Tensor, sort: Any) -> SimulatedRequest:
        """Post a wildcard receive, which takes the first message sent with its tag and group."""
        me = self.current
        request = SimulatedRequest(self, me, "recv", ANY, tensor)
        queues = self.sends[me.number]
        first = min(
            (queue for channel, queue in queues.items() if queue and sort_of(channel) == sort),
            key=lambda queue: queue[0].order,
            default=None,
        )
        if first is not None:
            self._deliver_sent(first.pop(0), request)
        else:
            self.receiving[me.number] += 1
            self.order = request.order = self.order + 1
            self.wildcards[me.number].append((sort, request))
        return request

    def _deliver_sent(self, send: SimulatedRequest, receive: SimulatedRequest) -> None:
        self.sending[send.rank.number] -= 1
        self.deliver(send, receive)

    def _enqueue(
        self, queues: dict[Any, list[SimulatedRequest]], channel: Any, request: SimulatedRequest
    ) -> None:
        self.order = request.order = self.order + 1
        queues.setdefault(channel, []).append(request)

    def deliver(self, send: SimulatedRequest, receive: SimulatedRequest) -> None:
        """Match the two ends of a message: copy the data, and find when it arrives."""
        theirs = send.tensor
        mine = receive.tensor
        nbytes = theirs.nbytes
        if theirs.dtype is not mine.dtype or nbytes != mine.nbytes:
            receive.peer = send.rank.number
            self.misfits.append(MessageMismatch(send, receive))
            if nbytes > mine.nbytes:
                return  # gloo aborts the receiving process; here neither end ever completes
        source, destination = send.rank.number, receive.rank.number
        done = send.arrives
        met = False
        if done is None:
            met = bool(self.met or self.sending[source] or self.receiving[destination])
            if not met:
                done = send.done = self.carry(self.now, source, destination, nbytes)
        self.messages += 1
        self.bytes += nbytes
        if self.ledger is not None:
            self.ledger.note(source, destination, send.tensor)
        # as gloo: bytes of any dtype and shape, without gradient; both ends are contiguous, and
        # Tensor.copy_ takes twice as long for short messages
        memmove(mine.data_ptr(), theirs.data_ptr(), nbytes)
        increment_version((mine,))
        receive.peer = source
        receive.done = done
        if met:
            self._meet(send, receive)
            return
        if done is None:
            self.travelling.add(send, receive)
            return
        if send.waiter is not None:
            self.at(done, send.waiter)
        if receive.waiter is not None:
            self.at(done, receive.waiter)

    def _meet(self, send: SimulatedRequest, receive: SimulatedRequest) -> None:
        """Put off the assignment of ports to a message until the end of the moment.

        One of its ranks has posted other ends before.  Until all ranks have run, one of those
        may get its other end too, and then it comes first.
        """
        for end in (send, receive):
            if not end.order:
                self.order = end.order = self.order + 1
        self.met.append((send, receive))

    def _assign(self) -> None:
        # a port takes messages in the order of their posts: the first message of each sender
        # comes before any second one, and those for one receiver in the order of its receives
        met = sorted(self.met, key=lambda ends: ends[0].order)
        self.met.clear()
        places = [0] * self.size
        turns = []
        for send, receive in met:
            source = send.rank.number
            turns.append((places[source], receive.order, send, receive))
            places[source] += 1
        for _, _, send, receive in sorted(turns, key=lambda turn: turn[:2]):
            source, destination = send.rank.number, receive.rank.number
            done = self.carry(self.now, source, destination, send.tensor.nbytes)
            send.done = receive.done = done
            if done is None:
                self.travelling.add(send, receive)
                continue
            # polling ranks looked before this moment was known
            self.stop_at(done)
            for end in (send, receive):
                if end.waiter is not None:
                    self.at(done, end.waiter)
