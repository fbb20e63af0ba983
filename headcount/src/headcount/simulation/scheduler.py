"""The clock of a simulated world, and which rank runs next.

Ranks are greenlets.  A rank runs until it waits for a message, and then switches to the next one
that can run; when none can, the clock advances to the next moment at which a message arrives.
So everything happens in the order of virtual time, and what happens at the same moment in an
order that is the same every time.

Ranks that wait when no message is on its way wait for ever: a deadlock is found at once, and for
certain.
"""

from __future__ import annotations

import _thread
import gc
import heapq
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import greenlet
import msgspec
import torch

from headcount.core.events import ANY, WORLD
from headcount.core.source_locations import line_here, standing_for
from headcount.rank.requests import TransportError, WaitExpired
from headcount.simulation.network import Network, Undecided, ticks_of

if TYPE_CHECKING:
    from headcount.simulation.builtin import Work

__all__ = ["MessagesInFlight", "Rank", "Scheduler", "SimulatedRequest"]


# Ranks, and the requests that they wait for. --------------------------------------


class Rank:
    """A simulated rank, or something that runs beside one and uses its ports.

    Attributes:
        number: the global rank.
        index: its own number among ranks and all that runs beside them.
        green: the greenlet that it runs in.
        begun: whether it has started to run.
        waits: what it waits for now, or ``None``.
        value: what its function returned.
        error: what its function raised, or ``None``.
        ended: the tick at which it ended, or ``None`` before.
        switch: switches to its greenlet.
        thread: the thread that runs something for it meanwhile, see
            :meth:`Scheduler.in_own_thread`, or ``None``.
    """

    __slots__ = (
        *("begun", "ended", "error", "green", "index", "number", "switch", "thread", "value"),
        "waits",
    )

    def __init__(self, number: int, green: greenlet.greenlet) -> None:
        self.number = self.index = number
        self.green = green
        self.waits: SimulatedRequest | Work | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended: int | None = None
        self.begun = False
        self.switch = green.switch
        self.thread: OwnThread | None = None


class SimulatedRequest(msgspec.Struct, eq=False, gc=False):
    """One end of a message: what ``isend`` and ``irecv`` return.

    A struct, since one is made for every message, and creating an instance of a plain class
    takes three times as long.

    Attributes:
        rank: the rank that posted it.
        kind: ``send`` or ``recv``.
        peer: the other rank; −1 for a wildcard receive that is not matched yet.
        tensor: the student's tensor, or a copy of it for an eager send.
        done: the tick at which it is complete, or ``None`` before that is known.
        waiter: the rank that waits for it, or ``None``.
        order: its place among the requests that were posted before their other end.
        arrives: the tick at which an eager message arrives; ``None`` for other messages.
        place: where it was posted: code object and instruction, or file and line.
        group: the name of the process group.
        error: why it will never be complete, or an empty string.
        only: of a receive from any rank, the one whose message it has to get; −1 if any will do,
            −2 if that is chosen when nothing else can happen.
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
    group: str = WORLD
    error: str = ""
    only: int = ANY

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete.

        Raises:
            WaitExpired: ``timeout`` ended first, and has closed the rank's connections, as gloo
                does.
            TransportError: a rank at one of its ends has closed its connections.
        """
        done, world = self.done, self._world
        if done is None or done > world.now:
            try:
                world.wait(self, timeout)
            except WaitExpired:
                world.close_connections(self)
                raise
        world.open.pop(self, None)
        if self.error:
            raise TransportError(self.error)
        return True

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        world = self._world
        if self.done is None or self.done > world.now:
            world.give_way(self)
        if self.done is None or self.done > world.now:
            return False
        world.open.pop(self, None)
        if self.error:
            raise TransportError(self.error)
        return True

    def is_success(self) -> bool:
        """Return whether it is complete."""
        return self.done is not None and self.done <= self._world.now

    def source_rank(self) -> int:
        """Return the rank that a received message came from."""
        return self.peer

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Refuse, as gloo does: only collectives have futures."""
        raise RuntimeError("Work::getFuture not implemented.")


# Messages whose arrival is not known yet. -----------------------------------------
#
# Most networks know when a message will arrive as soon as it has both its ends.  Those that do
# not are asked here, and only as far as the clock can advance before some rank runs again:
# what that rank sends may change everything that comes later.


class MessagesInFlight:
    """The messages on their way in an :class:`~headcount.simulation.network.Undecided` network.

    Args:
        network: the network that carries them.
        moments: a heap of the moments, in ticks, at which some rank may continue.
        at: schedules a rank to continue at a moment.
        stop_at: makes the clock stop at a moment, so that polling ranks look again.

    Attributes:
        ends: both ends of each message, by the number that the network gave it.
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
        """Add a message that the network has just been given, and return its receiving end."""
        self.ends[self._added] = send, receive
        self._added += 1
        return receive

    def go_on(self) -> None:
        """Let messages arrive until a rank may continue at the next moment of the clock."""
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


# Threads of ranks. ----------------------------------------------------------------

_T = TypeVar("_T")

#: The originals, before a simulation replaces them with functions that refuse threads.
_start_thread, _this_thread = _thread.start_new_thread, _thread.get_ident


class OwnThread:
    """A thread that runs a function for a simulated rank, while the rank's greenlet waits for it.

    Only one of the two runs at any time.  What only the greenlet can do, the thread asks it for.

    Args:
        function: called without arguments.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._turn, self._answered = _thread.allocate_lock(), _thread.allocate_lock()
        self._turn.acquire()
        self._answered.acquire()
        self._asked: Callable[[], Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._ident = 0
        self._place = line_here()[:2]

    def run(self) -> Any:
        """Start the thread, do what it asks for, and return what the function returns."""
        _start_thread(self._live, ())
        while True:
            self._turn.acquire()
            if self._asked is None:
                if self._error is not None:
                    raise self._error
                return self._value
            self._value, self._error = _attempt(self._asked)
            self._answered.release()

    def _live(self) -> None:
        self._ident = _this_thread()
        with standing_for(self._place):
            self._value, self._error = _attempt(self._function)
        self._asked = None
        self._turn.release()

    def runs_here(self) -> bool:
        """Return whether the caller is this thread."""
        return _this_thread() == self._ident

    def ask(self, function: Callable[[], _T]) -> _T:
        """From the thread, let the greenlet call a function, and return or raise what that does."""
        self._asked = function
        self._turn.release()
        self._answered.acquire()
        value, error = self._value, self._error
        self._value = self._error = None
        if error is not None:
            raise error
        return cast(_T, value)

    def frame(self) -> FrameType | None:
        """Return the innermost frame of the thread."""
        return sys._current_frames().get(self._ident)


def _attempt(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except BaseException as error:
        return None, error


# The scheduler. -------------------------------------------------------------------

# local names, since every switch looks at them
_here = greenlet.getcurrent
_FLOAT = torch.float32
_grad_enabled = torch.is_grad_enabled
_default_dtype = torch.get_default_dtype
_dispatch_modes = torch._C._len_torch_dispatch_stack


def _taken_modes() -> list[Any]:
    """Take this thread's dispatch modes from torch, and return them, the outermost first."""
    return [torch._C._pop_torch_dispatch_stack(None) for _ in range(_dispatch_modes())][::-1]


def _give_back(modes: list[Any]) -> None:
    for mode in modes:
        torch._C._push_on_torch_dispatch_stack(mode)


#: How many more moments ranks may run after one has raised.  The cause of the error may be
#: theirs, and some programs never end.
_GRACE = 100_000

#: How often ranks may ask in vain whether something is complete, all together and each at least,
#: while nothing else can happen: then they count as waiting for ever.
_IN_VAIN, _EACH = 200_000, 100


class Scheduler:
    """Runs ranks until all have ended, or none can continue.

    A rank that raises does not end the others: which of several errors is the cause is decided
    later, by their kinds and not by which came first.

    Args:
        functions: one per rank, called without arguments.
        network: the network that carries their messages.

    Attributes:
        now: the virtual time, in ticks.
        current: the rank that runs.
        messages: number of messages sent and received so far.
        travelling: the messages whose arrival is not known yet.
        threads: the rank of each thread that the program has started; those that are no
            :class:`threading.Thread` are all one, ``None``.
    """

    def __init__(self, functions: Sequence[Callable[[], Any]], network: Network) -> None:
        self.size = len(functions)
        self.now = 0
        self.messages = 0
        self.threads: dict[threading.Thread | None, int] = {}
        self._ident = _this_thread()
        self._main = greenlet.getcurrent()
        self.ranks = [
            Rank(number, greenlet.greenlet(self._live(function), self._main))
            for number, function in enumerate(functions)
        ]
        #: the ranks, and after them all that runs beside them, see :meth:`start`
        self._strands = list(self.ranks)
        self._idle: list[int] = []
        #: messages that got both ends at this moment, and whose ports are not assigned yet
        self.met: list[tuple[SimulatedRequest, SimulatedRequest]] = []
        self.current = self.ranks[0]
        self._ready = deque(range(self.size))
        self._moments: list[int] = []
        self._due: dict[int, list[int]] = {}
        self._polling: list[int] = []
        #: messages and completed collectives when polling ranks last looked
        self._happened = 0
        self._completed = 0
        #: how often they have looked since then
        self._in_vain = 0
        #: moments left to the ranks, once one has raised; ``None`` before
        self._left: int | None = None
        self.travelling = MessagesInFlight(network, self._moments, self.at, self.stop_at)

    def run(self) -> None:
        """Run until no rank can continue; the outcome of each is in :attr:`ranks`.

        Ranks that wait for ever stay suspended, so that their stacks can be read; see
        :meth:`end`.
        """
        collecting = gc.isenabled()
        # the collector would go through thousands of stacks and find nothing
        gc.disable()
        try:
            while (following := self._next_rank()) is not None:
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
            # modes of torch that this rank has set are not for the others
            torch.set_grad_enabled(True)
            torch.set_default_dtype(_FLOAT)
            rank.ended = self.now
            if rank.index >= self.size:
                self._idle.append(rank.index)

        return live

    def start(self, function: Callable[[], None]) -> None:
        """Run a function beside the current rank, in a greenlet of its own, on the rank's ports."""
        live = self._live(function)
        # a greenlet belongs to the thread that makes it
        green = self._in_greenlet(lambda: greenlet.greenlet(live, self._main))
        strand = Rank(self.current.number, green)
        if self._idle:
            strand.index = self._idle.pop()
            self._strands[strand.index] = strand
        else:
            strand.index = len(self._strands)
            self._strands.append(strand)
        self._ready.append(strand.index)

    def _next_rank(self) -> Rank | None:
        """Return the rank that runs next, or ``None``; advance the clock if none is ready."""
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
            elif not self._release() and not self._may_look():
                return None
            if self._polling:
                # polling ranks look again whenever something may have happened
                due += self._polling
                self._polling.clear()
                if self._happened != self.messages + self._completed:
                    self._happened, self._in_vain = self.messages + self._completed, 0
            # ranks that continue at the same moment run in the order of their numbers
            due.sort()
            ready.extend(due)
        return self._strands[ready.popleft()]

    def _release(self) -> bool:
        """Match a receive that was held back, if there is one; return whether there was."""
        raise NotImplementedError

    def _may_look(self) -> bool:
        """Return whether polling ranks may look again, although the clock stands still.

        A program may ask once and go on, so that nothing needs to have happened in between; but
        one that asks for ever has to be found.
        """
        if not self._polling:
            return False
        if self._happened == self.messages + self._completed:
            self._in_vain += 1
        return self._in_vain <= max(_EACH, _IN_VAIN // self.size)

    def _assign(self) -> None:
        """Assign ports to the messages in :attr:`met`."""
        raise NotImplementedError

    def _resume(self, rank: Rank) -> None:
        self.current = rank
        rank.begun = True
        rank.switch()

    def switch(self) -> None:
        """Suspend the current rank until it is scheduled to continue, and run others.

        Raises:
            RuntimeError: the caller is not the thread that simulates the ranks.
        """
        if _here() is not self.current.green:
            self._in_greenlet(self.switch)
            return
        if _grad_enabled() is not True or _default_dtype() is not _FLOAT or _dispatch_modes():
            self._switch_with_modes()
            return
        ready = self._ready
        following = self._strands[ready.popleft()] if ready else self._next_rank()
        me = self.current
        if following is me:
            return
        if following is not None and following.begun:
            self.current = following
            following.switch()
        else:
            # the main greenlet starts every rank: started by another rank, it would begin on top
            # of that one's C stack, and every switch would have to copy more
            if following is not None:
                ready.appendleft(following.index)
            self._main.switch()

    def in_own_thread(self, function: Callable[[], _T]) -> _T:
        """Call a function for the current rank in a thread, in which it may communicate as well.

        It is for what keeps its state by thread and cannot be left and entered again by another
        rank, as autograd's engine.
        """
        rank = self.running()
        if rank.thread is not None:  # a backward pass inside of one
            return function()
        modes = _taken_modes()
        _give_back(modes)

        def in_modes() -> _T:
            _give_back(modes)
            return function()

        rank.thread = thread = OwnThread(in_modes if modes else function)
        try:
            return cast(_T, thread.run())
        finally:
            rank.thread = None

    def _in_greenlet(self, function: Callable[[], _T]) -> _T:
        """Call a function in the current rank's greenlet, from there or from its own thread.

        Raises:
            RuntimeError: the caller is neither.
        """
        if _here() is self.current.green:
            return function()
        thread = self.current.thread
        if thread is None or not thread.runs_here():
            self._refuse_thread()
        return thread.ask(function)

    def running(self) -> Rank:
        """Return the rank that runs, which the caller is a part of.

        A rank has one stack and one clock, which a second thread cannot leave and come back to;
        threads that only compute are fine.

        Raises:
            RuntimeError: the caller is a thread that the program has started.
        """
        if self.threads:  # programs without threads do not pay for the check
            thread = self.current.thread
            if _this_thread() != self._ident and not (thread and thread.runs_here()):
                self._refuse_thread(self.threads.get(threading.current_thread()))
        return self.current

    def noting_threads(self, starter: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that starts a thread, and notes it in :attr:`threads`."""

        def start(*arguments: Any, **named: Any) -> Any:
            first = arguments[0] if arguments else None
            thread = first if isinstance(first, threading.Thread) else None
            self.threads[thread] = self.current.number
            return starter(*arguments, **named)

        return start

    def _refuse_thread(self, number: int | None = None) -> NoReturn:
        number = self.current.number if number is None else number
        error = RuntimeError(
            f"a thread of rank {number} communicates, sleeps or draws random numbers; simulated"
            " ranks share one thread: do that in the thread that your function is called in,"
            " or run the program on processes, with run(f, n)"
        )
        # kept even if the thread catches the exception
        self.ranks[number].error = error
        raise error

    def _switch_with_modes(self) -> None:
        """Switch, and restore the modes of torch that the current rank has set for itself."""
        grad, dtype, modes = _grad_enabled(), _default_dtype(), _taken_modes()
        torch.set_grad_enabled(True)
        torch.set_default_dtype(_FLOAT)
        self.switch()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        _give_back(modes)

    def at(self, moment: int, rank: Rank) -> None:
        """Schedule a rank to continue at a moment, in ticks."""
        due = self._due.get(moment)
        if due is None:
            self._due[moment] = [rank.index]
            heapq.heappush(self._moments, moment)
        else:
            due.append(rank.index)

    def stop_at(self, moment: int) -> None:
        """Make the clock stop at a moment, so that polling ranks look again."""
        if moment not in self._due:
            self._due[moment] = []
            heapq.heappush(self._moments, moment)

    # Waiting. ----------------------------------------------------------------

    def wait(self, request: SimulatedRequest | Work, limit: timedelta | None = None) -> None:
        """Suspend the current rank until a request is complete.

        Raises:
            WaitExpired: ``limit``, in virtual time, ended first.
        """
        if limit is not None and limit > timedelta(0):
            self._wait_until(request, self.now + ticks_of(limit.total_seconds()), limit)
            return
        me = self.running() if self.threads else self.current
        done = request.done
        if done is None:
            request.waiter = me
        elif done > self.now:
            self.at(done, me)
        else:
            return
        me.waits = request
        self.switch()
        me.waits = None

    def _wait_until(self, request: SimulatedRequest | Work, end: int, limit: timedelta) -> None:
        done = request.done
        if done is not None and done <= self.now:
            return
        me = self.running()
        if done is None:
            request.waiter = me
        elif done <= end:
            self.at(done, me)
        if done is None or done > end:
            self.at(end, me)
        me.waits = request
        self.switch()
        me.waits = None
        # it may be scheduled for both reasons, at one moment or at two
        request.waiter = None
        if request.done is not None and request.done <= self.now:
            self._not_at(end, me)
            return
        if request.done is not None:
            self._not_at(request.done, me)
        raise WaitExpired(
            f"Timed out waiting {limit.total_seconds() * 1000:g}ms for the operation to complete"
        )

    def _not_at(self, moment: int, rank: Rank) -> None:
        """Cancel that a rank continues at a moment, if it was scheduled to."""
        for due in (self._due.get(moment), self._ready if moment == self.now else None):
            if due is not None and rank.index in due:
                due.remove(rank.index)

    def complete(self, request: Work) -> None:
        """Mark a collective as complete now, and wake the rank that waits for it."""
        request.done = self.now
        self._completed += 1
        if request.waiter is not None:
            self.at(self.now, request.waiter)
        request.completed()

    def give_way(self, request: SimulatedRequest | Work) -> None:
        """Let the other ranks run before the current one polls a request again.

        The clock advances if all of them wait or poll; if nothing can happen any more, the
        current rank counts as waiting for ``request``.
        """
        me = self.running()
        if request.done is not None:
            # no rank may be waiting for it, so that the clock would pass this moment
            self.stop_at(request.done)
        self._polling.append(me.index)
        me.waits = request
        self.switch()
        me.waits = None

    def sleep(self, ticks: int) -> None:
        """Suspend the current rank for a number of ticks."""
        self.at(self.now + ticks, self.running())
        self.switch()
