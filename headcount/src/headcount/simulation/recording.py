"""The recording groups of simulated ranks, which are those of real ranks on a simulated transport.

What a program does wrong is found by the same code as in processes: each rank has a recorder of its
own, its group is a recording group, and the judge makes of what they report what it makes of real
ranks' reports.  Only what has to do with time differs: a rank that waits lets the others run, and
nobody has to decide what a receive from any rank gets, since virtual time does.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
from torch.futures import Future as TorchFuture

from headcount.core.events import ANY, Blocked, Event, Inspected, Matched, Posted
from headcount.core.source_locations import is_students
from headcount.rank.arguments import COLLECTIVES, REFUSED
from headcount.rank.recorder import EVENTS, OPERATIONS, Recorder
from headcount.rank.recording_group import RecordingGroup
from headcount.rank.requests import (
    Future,
    Gated,
    Request,
    TransportError,
    WaitExpired,
    settle_later,
)
from headcount.rank.transports.gloo import BACKEND
from headcount.simulation.builtin import Builtins
from headcount.simulation.group import SimulatedGroup
from headcount.simulation.network import PER_SECOND
from headcount.simulation.scheduler import Rank
from headcount.simulation.world import SimulatedWorld
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = ["CallRecord", "RankRecorder", "WatchedGroup", "stands_at", "wait_all"]

_PER_NANOSECOND = PER_SECOND // 10**9

#: Whose message a receive from any rank gets is chosen when nothing else can happen any more.
_LAST = -2


# What ranks report. ---------------------------------------------------------------


class CallRecord:
    """What the recorders of all ranks report, in the order of virtual time.

    Args:
        world: the simulated world.
        most: the number of reports after which no more are kept; then none are used.
        allowed: names of the collectives that may be called; ``None`` allows all.
        policy: says which messages some receives from any rank have to get.

    Attributes:
        reports: what was reported, each with its rank.
        full: whether there was more.
        recorders: the recorder of each rank.
    """

    def __init__(
        self,
        world: SimulatedWorld,
        most: int,
        allowed: frozenset[str] | None,
        policy: WildcardPolicy,
    ) -> None:
        self._most = most
        self._policy = policy
        self._world = world
        self._undecided: list[tuple[int, int, Any]] = []
        self.reports: list[tuple[int, Event | Matched]] = []
        self.full = False
        self.recorders = [RankRecorder(world, self, number) for number in range(world.size)]
        for recorder in self.recorders:
            recorder.begin(allowed, strict=True)

    def add(self, rank: int, event: Event | Matched) -> None:
        """Add what a rank reports, after the matches that receives from any rank have got."""
        self._decide()
        self._keep(rank, event)

    def _keep(self, rank: int, event: Event | Matched) -> None:
        if len(self.reports) < self._most:
            self.reports.append((rank, event))
        else:
            self.full = True

    def only(self, rank: int, op: int) -> int:
        """Return whose message a receive from any rank has to get, see ``SimulatedRequest``."""
        return self._policy.forced.get((rank, op), _LAST if self._policy.lowest else ANY)

    def follow(self, rank: int, op: int, request: Any) -> None:
        """Report which message a receive from any rank gets, once that is known."""
        self._undecided.append((rank, op, request))

    def _decide(self) -> None:
        for one in [one for one in self._undecided if one[2].peer != ANY]:
            self._undecided.remove(one)
            rank, op, request = one
            self._keep(rank, Matched(op, request.peer))

    def batching(self, batch_isend_irecv: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and lets its rank report a batch."""

        @functools.wraps(batch_isend_irecv)
        def batch(p2p_op_list: list[Any]) -> Any:
            with self.recorders[self._world.running().number].batched():
                return batch_isend_irecv(p2p_op_list)

        return batch

    def remark(self, text: str, file: str, line: int) -> None:
        """Report what the running rank is warned of."""
        self.recorders[self._world.running().number].remark(text, file, line)

    def finish(self) -> None:
        """Report what ranks that will never go on wait for, unless they have said so."""
        self._decide()
        for recorder in self.recorders:
            recorder.finish()
        if len(self.reports) > OPERATIONS:
            events = Counter(r for r, event in self.reports if not isinstance(event, Matched))
            posts = Counter(r for r, event in self.reports if isinstance(event, Posted))
            # the judge follows no more of one rank
            self.full |= max(events.values()) > EVENTS or max(posts.values()) > OPERATIONS


class RankRecorder(Recorder):
    """The recorder of a simulated rank.

    Args:
        world: the simulated world.
        record: what its reports are added to.
        rank: the rank.
    """

    def __init__(self, world: SimulatedWorld, record: CallRecord, rank: int) -> None:
        super().__init__(rank, self._report)
        self.world = world
        self._record = record
        self._latest = -1
        #: by thread, the operation that it asks about, and what it waits for that is none
        self.asked: dict[int, int] = {}

    def _report(self, event: Event, _: bool) -> None:
        # what completes after the function has returned, the program has not seen
        if self.world.ranks[self.rank].ended is None:
            self._record.add(self.rank, event)

    def now(self) -> int:
        """Return the virtual time in nanoseconds, later than that of the last event."""
        self._latest = max(self.world.now // _PER_NANOSECOND, self._latest + 1)
        return self._latest

    def thread(self, ident: int) -> int:
        """Return 0 for the function's own course, another number for what runs beside it."""
        current = self.world.running()
        return 0 if current.index == current.number else current.index

    def post(self, kind: str, group: str, **named: Any) -> int:
        """Report an operation; none waits for the judge."""
        return super().post(kind, group, **{**named, "deferred": None})

    def must_defer(self, wildcard: bool, group: str, tag: int) -> bool:
        """Return that no receive has to wait for the judge."""
        return False

    def only(self, op: int) -> int:
        """Return whose message a receive from any rank has to get, see ``SimulatedRequest``."""
        return self._record.only(self.rank, op - self._first)

    def matches_any(self, op: int, request: Any) -> None:
        """Report later which message a receive from any rank gets."""
        self._record.follow(self.rank, op - self._first, request)

    def polls(self, op: int) -> None:
        """Note that the rank asks about an operation, and may never get an answer."""
        self.asked[self.thread(0)] = op - self._first

    def answered(self) -> None:
        """Note that it has got one."""
        self.asked.pop(self.thread(0), None)

    def finish(self) -> None:
        """Report what the rank waits for, if it has not ended and will never go on."""
        rank = self.world.ranks[self.rank]
        if rank.ended is not None or rank.error is not None:
            return
        file, line = stands_at(rank)
        for thread, op in self.asked.items():
            self.emit(Blocked(op, file, line, self.now(), thread), True)
        if rank.waits is not None and isinstance(rank.waits, _Moment):
            self.emit(Inspected(False, [(0, file, line)], []), True)


def stands_at(rank: Rank) -> tuple[str, int]:
    """Return the file and line of the student's code at which a rank is suspended."""
    inside = rank.thread.frame() if rank.thread is not None else None
    for innermost in (inside, rank.green.gr_frame):
        frame: FrameType | None = innermost
        while frame is not None:
            if is_students(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
    return "", 0


# Requests and futures, whose waits pass virtual time. ------------------------------


class _Moment:
    """A moment that a rank waits for, which is no operation's end."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.done: int | None = None
        self.waiter: Rank | None = None

    def completed(self) -> None:
        """Do nothing: it has no future."""


class _VirtualRequest(Request):
    """A request whose waits let the other ranks run."""

    _waited = False

    def _take_turn(self, limit: int) -> None:
        inner = self._transports()
        if self._complete or self._error is not None:
            return
        if self._waited:  # by what runs beside this, as a callback does; a request wakes but one
            while not inner.is_completed():
                pass
            return
        self._waited = True
        try:
            inner.wait(*([timedelta(milliseconds=limit)] if limit else []))
        except WaitExpired as error:
            self._expire(limit, broken=not self._lasting, why=str(error))
        except RuntimeError as error:
            self._error = TransportError(str(error))
        finally:
            self._waited = False

    def _transports(self) -> Any:
        """Return the transport's request."""
        return self._inner._request() if isinstance(self._inner, Gated) else self._inner

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        if not self._complete:
            self._begin()
            recorder: Any = self._recorder
            recorder.polls(self._op)
            try:
                done = self._transports().is_completed()
            except RuntimeError as error:
                self._error, done = TransportError(str(error)), True
            recorder.answered()
            if done:
                self._settle()
        return self._complete

    def source_rank(self) -> int:
        """Return the rank in the group that the message came from."""
        return int(self._inner.source_rank()) if self._source == ANY else self._source

    _source_rank = source_rank

    def get_future(self) -> Future:
        """Return a future, whose waits let the other ranks run."""
        if self._future is None:
            inner = self._transports().get_future()
            self._future = _VirtualFuture([self])
            settle_later(inner, self._future, self._settled, self._lost)
        return self._future

    def await_future(self) -> None:
        """Block until the operation is complete."""
        if self._future is None or self._future.complete:
            return
        self._recorder.blocked(self._op, self._limit)
        try:
            self._begin()
            self._take_turn(self._limit)
        finally:
            self._recorder.resumed()


class _VirtualFuture(Future):
    """A future whose waits let the other ranks run."""

    def wait(self) -> Any:
        """Block until it is complete, and return its value."""
        for request in self._requests:
            request.await_future()
        if not self.complete:
            # a callback before it is still running, or suspended
            recorder: Any = self._requests[0].recorder
            world = recorder.world
            moment: Any = _Moment(world.running())
            TorchFuture.add_done_callback(self, lambda _: world.complete(moment))
            world.wait(moment)
        self._observe()
        return TorchFuture.wait(self)


def wait_all(futures: Sequence[Any]) -> list[Any]:
    """Replace ``torch.futures.wait_all``: wait for one after the other, in virtual time."""
    return [future.wait() for future in futures]


# Groups. ---------------------------------------------------------------------------


class _RankGroup(RecordingGroup):
    """The recording group of one simulated rank."""

    _request = _VirtualRequest

    def _take(
        self, op: int, landing: torch.Tensor, tensor: torch.Tensor, src: int, tag: int
    ) -> Any:
        if src != ANY:
            return self._inner.recv([landing], src, tag, tensor)
        recorder: Any = self._recorder
        request = self._inner.recv_anysource([landing], tag, tensor, recorder.only(op))
        recorder.matches_any(op, request)
        return request

    def _posted(self, gate: Gated) -> None:
        # the algorithm of a collective sends what it can before all others have called
        gate.resolve(ANY)

    def monitored_barrier(self, timeout: Any = None, **kwargs: Any) -> None:
        """Record, or refuse, a barrier; who is missing from it is found without a time limit."""
        super().monitored_barrier(None, **kwargs)


class WatchedGroup(SimulatedGroup):
    """The group that torch sees: a call goes to the recording group of the rank that makes it.

    Args:
        world, members, name, builtins: as of any simulated group.
        record: what the ranks report to.
    """

    def __init__(
        self,
        world: SimulatedWorld,
        members: Sequence[int],
        name: str,
        builtins: Builtins,
        record: CallRecord,
    ) -> None:
        super().__init__(world, members, name, builtins)
        self._transport = SimulatedGroup(world, members, name, builtins)
        self._recorders = record.recorders
        self._of_rank: dict[int, _RankGroup] = {}

    @property
    def posted(self) -> int:
        """How many operations the running rank has begun, in any group."""
        return self._recorders[self._world.running().number].posted

    def enter(self, rank: int, members: Sequence[int]) -> None:
        """Let a rank report that it is in the group, which has these members as it says."""
        self._of_rank[rank] = _RankGroup(
            self._transport,
            BACKEND,
            list(members).index(rank),
            len(members),
            members,
            self._name,
            self._recorders[rank],
        )

    @contextlib.contextmanager
    def forming(self, rank: int, members: Sequence[int]) -> Iterator[None]:
        """Report that a rank makes the group, and waits in this context until the others do."""
        recorder = self._recorders[rank]
        self.enter(rank, members)
        op = recorder.post("new_group", self._name, peer=ANY, detail=str(list(members)))
        recorder.blocked(op)
        yield
        recorder.resumed()
        recorder.done(op)

    def destroy(self, line: int) -> None:
        """Record that the running rank has destroyed the group; the other ranks keep it."""
        self._group_of_rank().destroy(line)

    def _group_of_rank(self) -> _RankGroup:
        return self._of_rank[self._world.running().number]


def _dispatching(method: str) -> Callable[..., Any]:
    def call(self: WatchedGroup, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._group_of_rank(), method)(*args, **kwargs)

    call.__name__ = method
    call.__doc__ = f"Call ``{method}`` of the running rank's recording group."
    return call


for _method in (
    *("send", "recv", "recv_anysource", "monitored_barrier"),
    *("_start_coalescing", "_end_coalescing", *COLLECTIVES, *REFUSED),
):
    setattr(WatchedGroup, _method, _dispatching(_method))
