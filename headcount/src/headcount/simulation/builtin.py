"""The built-in collectives of one simulation: the calls of the ranks, and what algorithms use.

The algorithms themselves are in :mod:`headcount.simulation.algorithms`, and come as data.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import cloudpickle
import torch

from headcount.core.events import Event, Matched, Outside, Remarked, Signature, Violated
from headcount.core.source_locations import TEXT, line_here
from headcount.core.values import reduction_name
from headcount.core.verdict import Diagnosis, Site
from headcount.rank.arguments import shared_outputs
from headcount.rank.recorder import REMARKS, ForbiddenCall, refusal
from headcount.trace.message_matcher import disagreement

if TYPE_CHECKING:
    from headcount.simulation.scheduler import Rank, SimulatedRequest
    from headcount.simulation.world import RecordedRequest, SimulatedWorld

__all__ = [
    "SUBTREE_END",
    "UNEVEN_BLOCKS",
    "Blocks",
    "BuiltinCall",
    "Builtins",
    "Combine",
    "Communicator",
    "Disagreement",
    "PendingCollectives",
    "Reduction",
    "Span",
    "Tensors",
    "Work",
    "channel_name",
    "even_blocks",
    "is_channel",
    "sized_blocks",
    "wait_all",
    "with_bit",
]


# The communicator. ----------------------------------------------------------------

_CHANNEL = "collectives of "


def channel_name(group: str) -> str:
    """Return the name of the channel that the messages of a group's collectives travel on."""
    return _CHANNEL + group


def is_channel(name: str) -> bool:
    """Return whether a name is a collective channel's; no group has such a name."""
    return name.startswith(_CHANNEL)


class Communicator:
    """What one rank needs in one collective call: its number, and messages to the others.

    The messages travel on a channel of their own, so none of the student's is ever received
    in place of one of them.  In a collective with a root, the ranks are numbered from the root.

    Args:
        world: the simulated world that the ranks belong to.
        members: the global ranks, indexed by rank in the communicator.
        rank: the calling rank's number in the communicator.
        name: name of the channel.
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
        """Start sending a flat tensor."""
        world, member = self._world, self._members[to]
        if world.recorder is None:
            return world.post_send(tensor, member, self._mine)
        number = world.recorder.post("send", tensor, member, 0, self._name)
        return world.recorder.follow(world.post_send(tensor, member, self._mine), number, member)

    def irecv(self, tensor: torch.Tensor, source: int) -> SimulatedRequest | RecordedRequest:
        """Start receiving into a flat tensor."""
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
        """Send one tensor and receive another at the same time."""
        request = self.isend(outgoing, to)
        self.recv(incoming, source)
        request.wait()


def wait_all(requests: Iterable[SimulatedRequest | RecordedRequest]) -> None:
    """Wait for requests, one after the other."""
    for request in requests:
        request.wait()


# Reductions. ----------------------------------------------------------------------

#: Combines the second tensor into the first.
Combine = Callable[[torch.Tensor, torch.Tensor], Any]


_COMBINES: dict[str, Combine] = {
    "SUM": torch.Tensor.add_,
    "AVG": torch.Tensor.add_,
    "PRODUCT": torch.Tensor.mul_,
    "MIN": lambda mine, theirs: torch.minimum(mine, theirs, out=mine),
    "MAX": lambda mine, theirs: torch.maximum(mine, theirs, out=mine),
    "BAND": torch.Tensor.bitwise_and_,
    "BOR": torch.Tensor.bitwise_or_,
    "BXOR": torch.Tensor.bitwise_xor_,
}


class Reduction:
    """The reduction that torch's options of a call name.

    Attributes:
        name: torch's name of it, such as ``SUM``.
        combine: combines the second tensor into the first.
    """

    __slots__ = ("combine", "name")

    def __init__(self, options: Any) -> None:
        self.name = reduction_name(getattr(options, "reduceOp", "SUM"))
        self.combine = _COMBINES[self.name]

    def finish(self, tensor: torch.Tensor, size: int) -> None:
        """Turn the combined terms of ``size`` ranks into the result: an average is divided."""
        if self.name == "AVG":
            tensor.div_(size)


# Blocks: a flat tensor cut into consecutive parts. --------------------------------


class Blocks:
    """Consecutive blocks of a flat tensor; neighbouring blocks can travel as one message.

    Args:
        flat: the tensor.
        starts: the first element of each block, and the end of the last one.
    """

    __slots__ = ("flat", "starts")

    def __init__(self, flat: torch.Tensor, starts: Sequence[int]) -> None:
        self.flat = flat
        self.starts = starts

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.flat[self.starts[index] : self.starts[index + 1]]

    def span(self, first: int, last: int) -> torch.Tensor:
        """Return blocks ``first`` to ``last`` − 1 as one tensor."""
        return self.flat[self.starts[first] : self.starts[last]]


def even_blocks(flat: torch.Tensor, count: int) -> Blocks:
    """Cut a tensor into ``count`` blocks whose lengths differ by at most one, longer ones first."""
    return Blocks(flat, _even_starts(flat.numel(), count))


def sized_blocks(flat: torch.Tensor, sizes: Sequence[int]) -> Blocks:
    """Cut a tensor into blocks of the given numbers of elements."""
    return Blocks(flat, _starts(tuple(sizes)))


# all ranks cut alike, and thousands of them cut thousands of blocks
@functools.lru_cache(maxsize=64)
def _even_starts(length: int, count: int) -> tuple[int, ...]:
    size, longer = divmod(length, count)
    return tuple(index * size + min(index, longer) for index in range(count + 1))


@functools.lru_cache(maxsize=64)
def _starts(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(sizes, initial=0))


#: Returns blocks a to b − 1 as one flat tensor.  A rank of a scatter or a gather holds the blocks
#: of its subtree and no others, so it is given this function rather than all of the blocks.
Span = Callable[[int, int], torch.Tensor]


@functools.lru_cache(maxsize=64)
def with_bit(size: int, bit: int) -> torch.Tensor:
    """Return the numbers below ``size`` that have a bit set."""
    numbers = torch.arange(size)
    return numbers[(numbers & bit) > 0]


#: One flat tensor for every rank.
Tensors = Sequence[torch.Tensor] | Blocks


# Matching calls: the k-th call of each rank of a group is one collective. ---------


@dataclass(slots=True, eq=False)
class BuiltinCall:
    """A rank's call of a collective.

    Attributes:
        rank: the global rank.
        kind: name of the collective.
        group: name of the process group.
        peer: the root's global rank, or −1 without a root.
        detail: what else all ranks must agree on, such as the reduction.
        signatures: what the rank gives to the others and takes from them.
        site: the student's line.
        thread_name: empty: a simulated rank's threads have no names.
    """

    rank: int
    kind: str
    group: str
    peer: int
    detail: str
    signatures: Sequence[Signature]
    site: Site
    thread_name: str = ""


class Disagreement(RuntimeError):
    """Two ranks call different collectives, or the same one with arguments that do not match."""

    def __init__(self, first: BuiltinCall, second: BuiltinCall) -> None:
        super().__init__(
            f"rank {second.rank} calls {second.kind} where rank {first.rank} calls {first.kind}"
        )
        self.calls = _by_rank(first, second)


class _Slot(dict[int, BuiltinCall]):
    """The calls of one collective, by rank.

    Attributes:
        uneven: whether some rank gives or takes different numbers of elements per rank.
    """

    uneven = False


class PendingCollectives:
    """The collective calls of one group that some members have not made yet.

    Args:
        members: the global ranks, indexed by rank in the group.
    """

    def __init__(self, members: Sequence[int]) -> None:
        self._members = members
        self._open: deque[_Slot] = deque()
        self._complete = 0
        self._calls: dict[int, int] = {}

    def join(self, call: BuiltinCall) -> None:
        """Add the next call of a rank.

        Raises:
            Disagreement: it does not match the call of another rank.
        """
        index = self._calls.get(call.rank, 0)
        self._calls[call.rank] = index + 1
        place = index - self._complete
        if place == len(self._open):
            self._open.append(_Slot())
        slot = self._open[place]
        slot.uneven |= any(len(s.gives) > 1 or len(s.takes) > 1 for s in call.signatures)
        others: Iterable[BuiltinCall] = islice(slot.values(), 1)
        if slot.uneven or call.rank == call.peer:
            others = slot.values()
        elif call.peer in slot:
            # where each rank gives and takes one number, a call that matches the root's, or
            # any other where there is no root, matches all of them
            others = (*others, slot[call.peer])
        for other in others:
            if disagreement(*_by_rank(other, call), self._members) is not None:
                raise Disagreement(other, call)
        slot[call.rank] = call
        while self._open and len(self._open[0]) == len(self._members):
            self._open.popleft()
            self._complete += 1

    def open(self) -> Iterator[BuiltinCall]:
        """Yield the calls that some member has not made yet, in their order."""
        for slot in self._open:
            for rank in sorted(slot):
                yield slot[rank]


def _by_rank(one: BuiltinCall, other: BuiltinCall) -> tuple[BuiltinCall, BuiltinCall]:
    return (one, other) if one.rank < other.rank else (other, one)


# The collectives of one simulation. ---------------------------------------------------


class Work:
    """A collective that a rank has called, as ``async_op=True`` returns it.

    The scheduler treats it as a request, though no single message belongs to it.

    Attributes:
        rank: the rank that called it.
        call: the call.
        done: the tick at which it was complete, or ``None`` before.
        waiter: the rank that waits for it, or ``None``.
    """

    __slots__ = ("_future", "_results", "_world", "call", "done", "rank", "waiter")

    def __init__(
        self, world: SimulatedWorld, rank: Rank, call: BuiltinCall, results: list[Any]
    ) -> None:
        self._world = world
        self._results = results
        self.rank = rank
        self.call = call
        self.done: int | None = None
        self.waiter: Rank | None = None
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete.

        Raises:
            WaitExpired: ``timeout`` ended first.
        """
        if self.done is None:
            self._world.wait(self, timeout)
        return True

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        if self.done is None:
            self._world.give_way(self)
        return self.done is not None

    def is_success(self) -> bool:
        """Return whether it is complete."""
        return self.done is not None

    def result(self) -> list[Any]:
        """Return the tensors that it writes."""
        return self._results

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future that is complete when the collective is."""
        if self._future is None:
            self._future = torch.futures.Future()
            if self.done is not None:
                self.completed()
        return self._future

    def completed(self) -> None:
        """Complete the future, if there is one."""
        if self._future is not None:
            self._future.set_result(self._results)


#: Names of functions besides the collectives': the algorithm of an all-to-all with blocks of
#: several sizes, where the chosen one takes no such blocks, and the end of a rank's subtree in a
#: scatter or a gather.
UNEVEN_BLOCKS, SUBTREE_END = "all_to_all of uneven blocks", "subtree_end"


class Builtins:
    """The built-in collectives of one simulation.

    Args:
        functions: the algorithms of those that are allowed, by collective, and what else these
            need, see :func:`headcount.simulation.algorithms.packed`.
        allowed: names of the collectives that may be called; ``None`` allows all.

    Attributes:
        pending: by group, the calls that some members have not made yet.
        members: the members of each group that has been made.
        inside: by rank, the collective that it is in.
        refused: by rank, the exception of its first forbidden call.
        disagreements: by rank, the exception of its first call that does not match another
            rank's, whether the program caught it or not.
        raced: the first call whose outputs are one and the same memory, with its rank.
        warned: what ranks do that breaks no rule and is probably a mistake, once for each line.
        same: what ranks hold of values that should be the same.
    """

    def __init__(
        self,
        functions: Mapping[str, bytes] = MappingProxyType({}),
        allowed: frozenset[str] | None = None,
    ) -> None:
        self._functions = functions
        self._loaded: dict[str, Callable[..., Any]] = {}
        self._allowed = allowed
        self.pending: dict[str, PendingCollectives] = {}
        self.members: dict[str, list[int]] = {}
        self.inside: dict[int, BuiltinCall] = {}
        self.refused: dict[int, ForbiddenCall] = {}
        self.disagreements: dict[int, Disagreement] = {}
        self.raced: list[tuple[int, Violated]] = []
        self.warned: dict[tuple[int, Outside | Remarked], None] = {}
        self.same: list[tuple[int, Event | Matched]] = []

    def function(self, name: str) -> Callable[..., Any]:
        """Return the algorithm of an allowed collective, or another function that it needs."""
        if name not in self._loaded:
            self._loaded[name] = cloudpickle.loads(self._functions[name])
        return self._loaded[name]

    def algorithm_of_uneven(self) -> Callable[..., Any] | None:
        """Return the algorithm of an all-to-all with blocks of several sizes, if it is another."""
        return self.function(UNEVEN_BLOCKS) if UNEVEN_BLOCKS in self._functions else None

    def found(self, name: str, members: list[int]) -> None:
        """Add a new group."""
        self.members[name] = members
        self.pending[name] = PendingCollectives(members)

    def require_allowed(self, rank: int, kind: str) -> None:
        """Raise :class:`ForbiddenCall`, and remember it, unless a collective is allowed."""
        message = refusal(kind, self._allowed)
        if message is not None:
            error = ForbiddenCall(message)
            self.refused.setdefault(rank, error)
            raise error

    def outside(self, rank: int, function: str) -> None:
        """Record that a rank calls a function on a group that it is not in."""
        file, line, _ = line_here()
        self.warned[rank, Outside(function, file, line)] = None

    def remark(self, rank: int, text: str, file: str, line: int) -> None:
        """Record what a rank is warned of."""
        if len(self.warned) < REMARKS:
            self.warned[rank, Remarked(text[:TEXT], file, line)] = None

    def require_apart(self, rank: int, kind: str, written: Sequence[torch.Tensor]) -> None:
        """Record whether a call writes twice to one memory."""
        places = [one.data_ptr() for one in written if one.nbytes]
        if self.raced or len(set(places)) == len(places):
            return
        (file, line, _), text = line_here(), shared_outputs(kind, written)
        fault = Violated(Diagnosis.BUFFER_RACE.value, text[:TEXT], file, line, 0)
        self.raced.append((rank, fault))

    def join(self, call: BuiltinCall) -> None:
        """Add the next collective call of a rank in a group.

        Raises:
            Disagreement: it does not match the call of another rank.
        """
        try:
            self.pending[call.group].join(call)
        except Disagreement as error:
            self.disagreements.setdefault(call.rank, error)
            raise

    def open(self) -> Iterator[BuiltinCall]:
        """Yield the calls that some members of their groups have not made."""
        for calls in self.pending.values():
            yield from calls.open()

    def awaited(self, rank: Rank) -> BuiltinCall | None:
        """Return the collective that a rank waits in or for, or ``None``."""
        if rank.waits is None:
            return None
        return rank.waits.call if isinstance(rank.waits, Work) else self.inside.get(rank.number)
