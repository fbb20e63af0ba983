"""The messages of simulated ranks, on the clock of :mod:`headcount.simulation.scheduler`.

A message needs both its ends, as in a real world: a send waits for its receive (synchronous),
unless it is short enough to leave its buffer at once (eager).  Messages can be counted, and they
can be recorded, for a trace like that of real ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import memmove
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import increment_version

from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Entered,
    Event,
    Grouped,
    Left,
    Marked,
    Matched,
    Posted,
)
from headcount.core.source_locations import line_here
from headcount.core.values import dtype_name
from headcount.core.wire import Tally
from headcount.rank.requests import TransportError
from headcount.simulation.network import PER_SECOND, Network
from headcount.simulation.scheduler import Scheduler, SimulatedRequest

__all__ = [
    "MessageCounter",
    "MessageMismatch",
    "RecordedRequest",
    "SimulatedWorld",
    "TraceRecorder",
    "channel_of",
    "tag_and_group",
]


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


def tag_and_group(channel: Any) -> tuple[int, str]:
    """Return the tag and the group of a channel, which wildcard receives match by."""
    return channel[1:] if isinstance(channel, tuple) else (0, WORLD)


def _source_of(channel: Any) -> int:
    """Return the rank that the messages of a channel come from."""
    return int(channel[0] if isinstance(channel, tuple) else channel)


@dataclass(frozen=True)
class MessageMismatch:
    """A message whose two ends differ in size or dtype."""

    send: SimulatedRequest
    receive: SimulatedRequest


#: What gloo says of a connection that one of its ranks has closed.
_CLOSED = "Connection closed by peer"


def _concerns(request: SimulatedRequest, rank: int, group: str) -> bool:
    """Return whether a message in a group is one of this rank's, or with it."""
    return request.group == group and rank in (request.rank.number, request.peer)


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
        #: by group, the ranks that have closed their connections, see :meth:`close_connections`
        self.closed: dict[str, set[int]] = {}

    def post_send(self, tensor: torch.Tensor, destination: int, channel: Any) -> SimulatedRequest:
        """Post a send from the current rank, and return its request."""
        request = SimulatedRequest(self, self.current, "send", destination, tensor)
        if tensor.nbytes <= self.eager:
            self._leave(request)
        receive = self.pop_receive(destination, channel) if self.receiving[destination] else None
        if receive is not None:
            self.receiving[destination] -= 1
            self.deliver(request, receive)
            if receive.only != ANY:
                self._match_again(destination, tag_and_group(channel))
        else:
            self.sending[self.current.number] += 1
            self._enqueue(self.sends[destination], channel, request)
        return request

    def require_connected(self, group: str, peer: int) -> None:
        """Check that the current rank and its peer, or any rank, have not given up a message.

        Raises:
            TransportError: one of them has.
        """
        closed = self.closed.get(group)
        if closed and {peer, self.current.number} & closed:
            raise TransportError(_CLOSED)

    def close_connections(self, given_up: SimulatedRequest) -> None:
        """Close the connections of a rank in a group, since it has given up a message there.

        All that waits there for the rank, or was posted by it, fails, as on gloo.
        """
        number, group = given_up.rank.number, given_up.group
        self.closed.setdefault(group, set()).add(number)
        self.open.pop(given_up, None)
        given_up.error, given_up.done = _CLOSED, self.now
        for rank in range(self.size):
            queues = [*self.sends[rank].values(), *self.receives[rank].values()]
            for queue in queues:
                for request in [one for one in queue if _concerns(one, number, group)]:
                    queue.remove(request)
                    self._fail(request)
            waiting = self.wildcards[rank]
            for entry in [one for one in waiting if _concerns(one[1], number, group)]:
                waiting.remove(entry)
                self._fail(entry[1])

    def _fail(self, request: SimulatedRequest) -> None:
        waits = self.sending if request.kind == "send" else self.receiving
        waits[request.rank.number] -= 1
        request.error, request.done = _CLOSED, self.now
        self.stop_at(self.now)
        if request.waiter is not None:
            self.at(self.now, request.waiter)

    def _leave(self, send: SimulatedRequest) -> None:
        """Start an eager message from a copy, so that its buffer may be used again."""
        tensor = send.tensor
        send.tensor = tensor.detach().clone()
        send.done = self.now
        send.arrives = self.carry(self.now, send.rank.number, send.peer, tensor.nbytes)

    def pop_receive(self, destination: int, channel: Any) -> SimulatedRequest | None:
        """Return the receive that takes a message on a channel: the first posted, or ``None``."""
        waiting = self.receives[destination].get(channel)
        wildcards = self.wildcards[destination]
        if wildcards:
            wanted = tag_and_group(channel)
            for place, (key, request) in enumerate(wildcards):
                if key == wanted:
                    if waiting and waiting[0].order < request.order:
                        break
                    if request.only != ANY and request.only != _source_of(channel):
                        return None  # it is held back, and all that comes after it
                    del wildcards[place]
                    return request
        return waiting.pop(0) if waiting else None

    def post_receive(self, tensor: torch.Tensor, source: int, channel: Any) -> SimulatedRequest:
        """Post a receive into a tensor of the current rank, and return its request."""
        me = self.current
        request = SimulatedRequest(self, me, "recv", source, tensor)
        sent = self.sends[me.number].get(channel)
        if sent and not (
            self.wildcards[me.number] and self._held_back(me.number, tag_and_group(channel))
        ):
            self._deliver_sent(sent.pop(0), request)
        else:
            self.receiving[me.number] += 1
            self._enqueue(self.receives[me.number], channel, request)
        return request

    def take_sent(self, tensor: torch.Tensor, source: int) -> bool:
        """Receive the one message that a rank has sent, in tag 0 of the default group.

        The other end is there, so that this one needs no request, which is most of what a message
        costs.  Where another message may take a port first, or the ends differ, nothing is done,
        and the answer is False.
        """
        me = self.current
        number = me.number
        sent = self.sends[number].get(source)
        if not sent or self.sending[source] > 1 or self.receiving[number] or self.met:
            return False
        theirs = sent[0].tensor
        nbytes = theirs.nbytes
        if theirs.dtype is not tensor.dtype or nbytes != tensor.nbytes:
            return False
        send = sent.pop()
        self.sending[source] = 0
        send.done = done = self.carry(self.now, source, number, nbytes)
        self.messages += 1
        self.bytes += nbytes
        if self.ledger is not None:
            self.ledger.note(source, number, theirs)
        memmove(tensor.data_ptr(), theirs.data_ptr(), nbytes)
        increment_version((tensor,))
        if done is None:
            receive = SimulatedRequest(self, me, "recv", source, tensor)
            self.wait(self.travelling.add(send, receive))
            return True
        if send.waiter is not None:
            self.at(done, send.waiter)
        if done > self.now:
            self.at(done, me)
            self.switch()
        return True

    def post_wildcard_receive(
        self, tensor: torch.Tensor, key: Any, only: int = ANY
    ) -> SimulatedRequest:
        """Post a wildcard receive, which takes the first message sent with its tag and group.

        With ``only`` it takes the first one of that rank, and waits for it; see
        :class:`SimulatedRequest`.
        """
        me = self.current
        request = SimulatedRequest(self, me, "recv", ANY, tensor)
        request.only = only
        held_back = self._held_back(me.number, key)
        first = None if held_back else self._first_sent(me.number, key, only)
        if first is not None:
            self._deliver_sent(first.pop(0), request)
        else:
            self.receiving[me.number] += 1
            self.order = request.order = self.order + 1
            self.wildcards[me.number].append((key, request))
        return request

    def _first_sent(self, rank: int, key: Any, only: int) -> list[SimulatedRequest] | None:
        """Return the queue of the first message for a rank's wildcard, or ``None``."""
        return min(
            (
                queue
                for channel, queue in self.sends[rank].items()
                if queue and tag_and_group(channel) == key and only in (ANY, _source_of(channel))
            ),
            key=lambda queue: queue[0].order,
            default=None,
        )

    # A wildcard receive that has to get the message of one rank waits for it, and what comes after
    # it on its tag and group waits with it, as if that message had been the first to arrive.

    def _held_back(self, rank: int, key: Any) -> bool:
        """Return whether a receive with this tag and group would come after one that is held."""
        return any(one == key and held.only != ANY for one, held in self.wildcards[rank])

    def _match_again(self, rank: int, key: Any) -> None:
        """Match what was held back behind a receive that has got its message."""
        named = [
            (request, channel)
            for channel, queue in self.receives[rank].items()
            if tag_and_group(channel) == key
            for request in queue
        ]
        any_rank = [(request, None) for one, request in self.wildcards[rank] if one == key]
        for request, channel in sorted([*named, *any_rank], key=lambda one: one[0].order):
            if channel is None:
                queue = self._first_sent(rank, key, request.only)
                if queue is None and request.only != ANY:
                    return
            else:
                queue = self.sends[rank].get(channel)
            if not queue:
                continue
            if channel is None:
                self.wildcards[rank].remove((key, request))
            else:
                self.receives[rank][channel].remove(request)
            self.receiving[rank] -= 1
            self._deliver_sent(queue.pop(0), request)

    def _release(self) -> bool:
        for rank, wildcards in enumerate(self.wildcards):
            seen = set()
            for key, request in wildcards:
                if key in seen or request.only == ANY:
                    seen.add(key)
                    continue
                seen.add(key)
                sources = [
                    _source_of(channel)
                    for channel, queue in self.sends[rank].items()
                    if queue and tag_and_group(channel) == key
                ]
                if sources:
                    request.only = min(sources)
                    self._match_again(rank, key)
                    return True
        return False

    def _deliver_sent(self, send: SimulatedRequest, receive: SimulatedRequest) -> None:
        self.sending[send.rank.number] -= 1
        self.deliver(send, receive)

    def _enqueue(
        self, queues: dict[Any, list[SimulatedRequest]], channel: Any, request: SimulatedRequest
    ) -> None:
        self.order = request.order = self.order + 1
        queue = queues.get(channel)
        if queue is None:
            queues[channel] = [request]
        else:
            queue.append(request)

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


# The record of a simulated run: the events that a real rank reports. --------------
#
# Times are in nanoseconds, as a real rank's are, but of virtual time.  Computing takes none of it,
# so that many events happen at one moment; to keep a rank's events in order, each is at least a
# nanosecond after the one before.

_PER_NANOSECOND = PER_SECOND // 10**9


class TraceRecorder:
    """Records the events of a simulated world.

    Args:
        world: the simulated world.
        most: number of events after which it stops; an incomplete trace is not used.

    Attributes:
        events: the events with their ranks, in the order in which they happened.
        full: whether it has stopped.
    """

    def __init__(self, world: SimulatedWorld, most: int) -> None:
        self._world = world
        world.recorder = self
        self._most = most
        self._numbers = [0] * world.size
        self._latest = [-1] * world.size
        self._undecided: list[tuple[int, int, SimulatedRequest]] = []
        self.events: list[tuple[int, Event | Matched]] = []
        self.full = False

    def entered(self) -> None:
        """Record that the running rank is about to call its function."""
        self._report(Entered(self._now()))

    def left(self, raised: bool) -> None:
        """Record that the function of the running rank has returned, or raised."""
        self._report(Left(raised, self._now()))

    def mark(self, text: str) -> None:
        """Record that the running rank is at a named place."""
        self._report(Marked(text, self._now()))

    def grouped(self, name: str, members: list[int]) -> None:
        """Record that the running rank is a member of a new group."""
        self._report(Grouped(name, members))

    def post(self, kind: str, tensor: torch.Tensor, peer: int, tag: int, group: str) -> int:
        """Record that the running rank posts one end of a message, and return its number."""
        me = self._world.running().number
        number, self._numbers[me] = self._numbers[me], self._numbers[me] + 1
        file, line, blocking = line_here()
        self._report(
            Posted(
                number, kind, peer, tag, group, tensor.numel(), tensor.nbytes,
                dtype_name(tensor.dtype), "", blocking, False, file, line, self._now(),
                tensor.untyped_storage().data_ptr(), int(tensor.storage_offset()),
            )
        )  # fmt: skip
        return number

    def follow(self, request: SimulatedRequest, number: int, peer: int) -> RecordedRequest:
        """Wrap the request of a post, so that its completion is recorded too."""
        if peer == ANY:
            self._undecided.append((request.rank.number, number, request))
        self._decide()
        return RecordedRequest(self, request, number)

    def blocked(self, number: int) -> None:
        """Record that the running rank waits for an operation."""
        file, line, _ = line_here()
        self._report(Blocked(number, file, line, self._now()))

    def done(self, number: int) -> None:
        """Record that the running rank has seen an operation complete."""
        self._decide()
        self._report(Completed(number, self._now()))

    def _decide(self) -> None:
        """Record which messages the wildcard receives have matched."""
        left = []
        for rank, number, request in self._undecided:
            if request.peer == ANY:
                left.append((rank, number, request))
            else:
                self._add(rank, Matched(number, request.peer))
        self._undecided = left

    def _now(self) -> int:
        me = self._world.running().number
        self._latest[me] = max(self._world.now // _PER_NANOSECOND, self._latest[me] + 1)
        return self._latest[me]

    def _report(self, event: Event) -> None:
        self._add(self._world.running().number, event)

    def _add(self, rank: int, event: Event | Matched) -> None:
        if len(self.events) < self._most:
            self.events.append((rank, event))
        else:
            self.full = True


class RecordedRequest:
    """A request whose completion is recorded."""

    def __init__(self, recorder: TraceRecorder, request: SimulatedRequest, number: int) -> None:
        self._recorder, self._request, self._number = recorder, request, number
        self._seen = False

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete.

        Raises:
            RuntimeError: ``timeout`` ended first.
        """
        if not self._seen:
            if not self._request.is_success():
                self._recorder.blocked(self._number)
            self._request.wait(timeout)
            self._complete()
        return True

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        if not self._request.is_completed():
            return False
        self._complete()
        return True

    def is_success(self) -> bool:
        """Return whether it is complete."""
        return self._request.is_success()

    @property
    def peer(self) -> int:
        """The global rank at the other end."""
        return self._request.peer

    def source_rank(self) -> int:
        """Return the rank that a received message came from."""
        return self._request.peer

    _source_rank = source_rank

    def _complete(self) -> None:
        if not self._seen:
            self._seen = True
            self._recorder.done(self._number)
