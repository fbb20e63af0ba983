"""The clock of a simulated world, and which rank runs next.

Ranks are greenlets.  One runs until it waits for a message, and then hands over
to the next that can run; when none can, the clock goes on to the next moment at
which a message arrives.  So everything happens in the order of virtual time,
and what happens at the same moment in an order that is the same every time.

Who waits when nothing will arrive any more waits for ever: a deadlock is found
at once, and for certain.
"""

from __future__ import annotations

import gc
import heapq
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, cast

import greenlet
import msgspec
import torch

from grader.simulation.network import Network, Undecided, ticks_of

if TYPE_CHECKING:
    from grader.simulation.builtin import Work

__all__ = ["MessagesInFlight", "Rank", "Scheduler", "SimulatedRequest"]


# Ranks, and the requests that they wait for. --------------------------------------


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


# Messages of which nobody knows yet when they will have arrived. ------------------
#
# Most networks know it as soon as a message has both its ends.  Those that do not
# are asked here, and only as far as the clock can go before some rank runs again:
# what that rank sends may change everything that comes later.


class MessagesInFlight:
    """What is on its way in an undecided network.

    Args:
        network: that carries it.
        moments: at which some rank may go on, the next one first.
        at: lets a rank go on at a moment.
        stop_at: lets the clock stop at one, for those who poll.

    Attributes:
        ends: both ends of each message, by its number.
    """

    def __init__(
        self,
        network: Network,
        moments: Sequence[int],
        at: Callable[[int, Rank], None],
        stop_at: Callable[[int], None],
    ) -> None:
        self._moments, self._at, self._stop_at = moments, at, stop_at
        # it is asked only if a message was undecided
        self._network = cast(Undecided, network)
        self._added = 0
        self.ends: dict[int, tuple[SimulatedRequest, SimulatedRequest]] = {}

    def add(self, send: SimulatedRequest, receive: SimulatedRequest) -> SimulatedRequest:
        """A message was carried; its receiving end."""
        self.ends[self._added] = send, receive
        self._added += 1
        return receive

    def go_on(self) -> None:
        """Let messages arrive until a rank may go on at the next moment of the clock."""
        network, moments = self._network, self._moments
        while self.ends:
            moment = network.following()
            if moments and moments[0] < moment:
                return
            for number in network.arrived(moment):
                for end in self.ends.pop(number):
                    end.done = moment
                    if end.waiter is not None:
                        self._at(moment, end.waiter)
                self._stop_at(moment)


# The scheduler. -------------------------------------------------------------------

# looked at in every switch
_here = greenlet.getcurrent
_FLOAT = torch.float32
_grad_enabled = torch.is_grad_enabled
_default_dtype = torch.get_default_dtype


#: Moments at which ranks may go on when one has raised: theirs may be the cause of
#: it, and some never end.
_GRACE = 100_000


class Scheduler:
    """Runs ranks until all have ended, or none can go on.

    One that raises does not end the others: which of several faults is the cause
    is chosen later, by what they are and not by which came first.

    Args:
        functions: one per rank, called without arguments.
        network: what their messages travel through.

    Attributes:
        now: ticks.
        current: the rank that runs.
        messages: that were sent and received so far.
        travelling: messages of which nobody knows yet when they will have arrived.
    """

    def __init__(self, functions: Sequence[Callable[[], Any]], network: Network) -> None:
        self.size = len(functions)
        self.now = 0
        self.messages = 0
        self._main = greenlet.getcurrent()
        self.ranks = [
            Rank(number, greenlet.greenlet(self._live(function), self._main))
            for number, function in enumerate(functions)
        ]
        #: the ranks, and after them what runs beside them, see :meth:`start`
        self._strands = list(self.ranks)
        self._idle: list[int] = []
        #: messages that have met at this moment, and whose ports are not assigned yet
        self.met: list[tuple[SimulatedRequest, SimulatedRequest]] = []
        self.current = self.ranks[0]
        self._ready = deque(range(self.size))
        self._moments: list[int] = []
        self._due: dict[int, list[int]] = {}
        self._polling: list[int] = []
        #: how much had happened when those who poll looked last, of messages and completions
        self._happened = 0
        self._completed = 0
        #: moments that are left to ranks that go on, once one has raised
        self._left: int | None = None
        self.travelling = MessagesInFlight(network, self._moments, self.at, self.stop_at)

    def run(self) -> None:
        """Run until nothing can go on; what became of each rank is in :attr:`ranks`.

        Those that wait for ever are left where they wait, to be looked at; see :meth:`end`.
        """
        collecting = gc.isenabled()
        # thousands of stacks to look through, and nothing to find
        gc.disable()
        try:
            while (following := self._next()) is not None:
                self._resume(following)
        finally:
            if collecting:
                gc.enable()

    def end(self) -> None:
        """End the ranks that wait for ever."""
        for rank in self._strands:
            if not rank.green.dead:
                self.current = rank
                rank.green.throw()

    def _live(self, function: Callable[[], Any]) -> Callable[[], None]:
        def live() -> None:
            rank = self.current
            try:
                rank.value = function()
            except greenlet.GreenletExit:
                return
            except BaseException as error:
                self.ranks[rank.number].error = error
                if self._left is None:
                    self._left = _GRACE
            # the others go on as they were
            torch.set_grad_enabled(True)
            torch.set_default_dtype(_FLOAT)
            rank.ended = self.now
            if rank.index >= self.size:
                self._idle.append(rank.index)

        return live

    def start(self, function: Callable[[], None]) -> None:
        """Run something for the current rank, beside what this does; it has the rank's ports."""
        strand = Rank(self.current.number, greenlet.greenlet(self._live(function), self._main))
        if self._idle:
            strand.index = self._idle.pop()
            self._strands[strand.index] = strand
        else:
            strand.index = len(self._strands)
            self._strands.append(strand)
        self._ready.append(strand.index)

    def _next(self) -> Rank | None:
        """Who runs next; the clock goes on if it must."""
        ready = self._ready
        while not ready:
            if self.met:
                self._assign()
            if self._left is not None:
                if not self._left:
                    return None
                self._left -= 1
            if self.travelling.ends:
                self.travelling.go_on()
            due = []
            if self._moments:
                self.now = heapq.heappop(self._moments)
                due = self._due.pop(self.now)
            elif not self._polling or self._happened == self.messages + self._completed:
                return None
            if self._polling:
                # whoever polls looks again whenever something may have happened
                due += self._polling
                self._polling.clear()
                self._happened = self.messages + self._completed
            # in the order of ranks, whatever came before
            due.sort()
            ready.extend(due)
        return self._strands[ready.popleft()]

    def _assign(self) -> None:
        """Assign ports to the messages in :attr:`met`."""
        raise NotImplementedError

    def _resume(self, rank: Rank) -> None:
        self.current = rank
        rank.begun = True
        rank.switch()

    def switch(self) -> None:
        """Let others run until somebody makes the current rank go on.

        Raises:
            RuntimeError: it is not the rank's own thread that asks for it.
        """
        if _here() is not self.current.green:
            self._refuse_thread()
        if _grad_enabled() is not True or _default_dtype() is not _FLOAT:
            self._switch_with_modes()
            return
        ready = self._ready
        following = self._strands[ready.popleft()] if ready else self._next()
        me = self.current
        if following is me:
            return
        if following is not None and following.begun:
            self.current = following
            following.switch()
        else:
            # one that has not begun is begun by the main greenlet: begun by each
            # other, they would stand on each other's stacks
            if following is not None:
                ready.appendleft(following.index)
            self._main.switch()

    def threaded(self, starter: Callable[..., Any]) -> Callable[..., Any]:
        """A function that starts a thread, after which whoever runs is asked for its thread.

        Until a program starts one, nobody is.  A rank has one stack and one clock, which a
        second thread cannot leave and come back to; threads that only compute are fine.
        """
        starts: weakref.WeakKeyDictionary[threading.Thread, int] = weakref.WeakKeyDictionary()
        own = threading.get_ident()

        def current(scheduler: Scheduler) -> Rank:
            running: Rank = scheduler.__dict__["current"]
            if threading.get_ident() != own:
                number = starts.get(threading.current_thread(), running.number)
                scheduler._refuse_thread(number)
            return running

        def run(scheduler: Scheduler, rank: Rank) -> None:
            scheduler.__dict__["current"] = rank

        watched = type(type(self).__name__, (type(self),), {"current": property(current, run)})

        def start(*arguments: Any, **named: Any) -> Any:
            if arguments and isinstance(arguments[0], threading.Thread):
                starts[arguments[0]] = self.current.number
            self.__class__ = watched
            return starter(*arguments, **named)

        return start

    def _refuse_thread(self, number: int | None = None) -> NoReturn:
        number = self.current.number if number is None else number
        error = RuntimeError(
            f"a thread of rank {number} communicates, sleeps or draws random numbers; simulated"
            " ranks share one thread: do that in the thread that your function is called in,"
            " or run the program on processes, with run(f, n)"
        )
        # whatever becomes of the thread, and of what it raises
        self.ranks[number].error = error
        raise error

    def _switch_with_modes(self) -> None:
        """Switch when the current rank has set modes of torch's that are not others'."""
        grad, dtype = _grad_enabled(), _default_dtype()
        torch.set_grad_enabled(True)
        torch.set_default_dtype(_FLOAT)
        self.switch()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)

    def at(self, moment: int, rank: Rank) -> None:
        """Let a rank go on at a moment."""
        due = self._due.get(moment)
        if due is None:
            self._due[moment] = [rank.index]
            heapq.heappush(self._moments, moment)
        else:
            due.append(rank.index)

    def stop_at(self, moment: int) -> None:
        """Let the clock stop there, for those who poll."""
        if moment not in self._due:
            self._due[moment] = []
            heapq.heappush(self._moments, moment)

    # Waiting. ----------------------------------------------------------------

    def wait(self, request: SimulatedRequest | Work, limit: timedelta | None = None) -> None:
        """Hold the current rank until a request is complete.

        Raises:
            RuntimeError: ``limit``, in virtual time, ends first.
        """
        if limit is not None and limit > timedelta(0):
            self._wait_until(request, self.now + ticks_of(limit.total_seconds()), limit)
            return
        done = request.done
        if done is None:
            request.waiter = self.current
        elif done > self.now:
            self.at(done, self.current)
        else:
            return
        me = self.current
        me.waits = request
        self.switch()
        me.waits = None

    def _wait_until(self, request: SimulatedRequest | Work, end: int, limit: timedelta) -> None:
        done = request.done
        if done is not None and done <= self.now:
            return
        me = self.current
        if done is None:
            request.waiter = me
        elif done <= end:
            self.at(done, me)
        if done is None or done > end:
            self.at(end, me)
        me.waits = request
        self.switch()
        me.waits = None
        # it may have been let go on for both reasons, at one moment or at two
        request.waiter = None
        if request.done is not None and request.done <= self.now:
            self._not_at(end, me)
            return
        if request.done is not None:
            self._not_at(request.done, me)
        raise RuntimeError(
            f"Timed out waiting {limit.total_seconds() * 1000:g}ms for the operation to complete"
        )

    def _not_at(self, moment: int, rank: Rank) -> None:
        """Do not let a rank go on at a moment, if it was to."""
        for due in (self._due.get(moment), self._ready if moment == self.now else None):
            if due is not None and rank.index in due:
                due.remove(rank.index)

    def complete(self, request: Work) -> None:
        """What a request stands for is done now."""
        request.done = self.now
        self._completed += 1
        if request.waiter is not None:
            self.at(self.now, request.waiter)

    def give_way(self, request: SimulatedRequest | Work) -> None:
        """Let the others run, and the clock go on if they all wait, or ask like the current rank.

        ``request`` is what it asks for; if nothing happens any more, it waits for that.
        """
        me = self.current
        if request.done is not None:
            # nobody else may wait for it
            self.stop_at(request.done)
        self._polling.append(me.index)
        me.waits = request
        self.switch()
        me.waits = None

    def sleep(self, ticks: int) -> None:
        """Hold the current rank for a time."""
        self.at(self.now + ticks, self.current)
        self.switch()
