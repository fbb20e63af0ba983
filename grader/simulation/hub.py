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
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import greenlet
import torch

from grader.simulation.ends import Misfit, Rank, Request, sort_of
from grader.simulation.ledger import Ledger
from grader.simulation.network import Network
from grader.simulation.travelling import Travelling
from grader.traffic.events import ANY

__all__ = ["Hub"]

# looked at in every switch
_FLOAT = torch.float32
_here = greenlet.getcurrent
_grad_enabled = torch.is_grad_enabled
_default_dtype = torch.get_default_dtype


#: Moments at which ranks may go on when one has raised: theirs may be the cause of
#: it, and some never end.
_GRACE = 100_000


class Hub:
    """Runs ranks until all have ended, or none can go on.

    One that raises does not end the others: which of several faults is the cause
    is chosen later, by what they are and not by which came first.

    Args:
        functions: one per rank, called without arguments.
        network: what their messages travel through.
        eager: bytes up to which a message leaves its buffer at once, whether
            anybody receives it or not; with −1 none does.
        ledger: counts what is sent, if it is wanted.

    Attributes:
        now: ticks.
        current: the rank that runs.
        messages, bytes: that were sent and received so far.
        order: how many ends of messages were posted before their other end.
        open: requests that nobody has seen complete, in the order of their posts.
        misfits: messages whose ends are not of one size and type, and never complete.
        carry: of the network.
    """

    def __init__(
        self,
        functions: Sequence[Callable[[], Any]],
        network: Network,
        eager: int = -1,
        ledger: Ledger | None = None,
    ) -> None:
        self.size = len(functions)
        self.now = 0
        self.messages = 0
        self.bytes = 0
        self.eager = eager
        self.ledger = ledger
        self.carry = network.carry
        self._main = greenlet.getcurrent()
        self.ranks = [
            Rank(number, greenlet.greenlet(self._live(function), self._main))
            for number, function in enumerate(functions)
        ]
        self.current = self.ranks[0]
        #: by destination, what was sent, and what is waited for, by channel
        self.sends: list[dict[Any, deque[Request]]] = [{} for _ in functions]
        self.receives: list[dict[Any, deque[Request]]] = [{} for _ in functions]
        #: by destination, what is waited for from any rank: (tag and group, request)
        self.anybody: list[list[tuple[Any, Request]]] = [[] for _ in functions]
        self.order = 0
        self.open: dict[Request, None] = {}
        self.misfits: list[Misfit] = []
        self._ready = deque(range(self.size))
        self._moments: list[int] = []
        self._due: dict[int, list[int]] = {}
        self._polling: list[int] = []
        #: how many messages there had been when those who poll looked last
        self._happened = 0
        #: moments that are left to ranks that go on, once one has raised
        self._left: int | None = None
        self.travelling = Travelling(network, self._moments, self.at, self.stop_at)

    # Running. ----------------------------------------------------------------

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
        for rank in self.ranks:
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
                rank.error = error
                if self._left is None:
                    self._left = _GRACE
            # the others go on as they were
            torch.set_grad_enabled(True)
            torch.set_default_dtype(_FLOAT)
            rank.ended = self.now

        return live

    def _next(self) -> Rank | None:
        """Who runs next; the clock goes on if it must."""
        ready = self._ready
        while not ready:
            if self.travelling.ends:
                self.travelling.go_on()
            if self._left is not None:
                if not self._left:
                    return None
                self._left -= 1
            due = []
            if self._moments:
                self.now = heapq.heappop(self._moments)
                due = self._due.pop(self.now)
            elif not self._polling or self._happened == self.messages:
                return None
            if self._polling:
                # whoever polls looks again whenever something may have happened
                due += self._polling
                self._polling.clear()
                self._happened = self.messages
            # in the order of ranks, whatever came before
            due.sort()
            ready.extend(due)
        return self.ranks[ready.popleft()]

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
        following = self.ranks[ready.popleft()] if ready else self._next()
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
                ready.appendleft(following.number)
            self._main.switch()

    def _refuse_thread(self) -> None:
        error = RuntimeError(
            f"a thread of rank {self.current.number} waits for a message; simulated ranks share"
            " one thread, so communicate in the one that your function is called in"
        )
        # whatever becomes of the thread, and of what it raises
        self.current.error = error
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
            self._due[moment] = [rank.number]
            heapq.heappush(self._moments, moment)
        else:
            due.append(rank.number)

    def stop_at(self, moment: int) -> None:
        """Let the clock stop there, for those who poll."""
        if moment not in self._due:
            self._due[moment] = []
            heapq.heappush(self._moments, moment)

    # Waiting. ----------------------------------------------------------------

    def wait(self, request: Request) -> None:
        """Hold the current rank until a request is complete."""
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

    def give_way(self, request: Request) -> None:
        """Let the others run, and the clock go on if they all wait, or ask like the current rank.

        ``request`` is what it asks for; if nothing happens any more, it waits for that.
        """
        me = self.current
        if request.done is not None:
            # nobody else may wait for it
            self.stop_at(request.done)
        self._polling.append(me.number)
        me.waits = request
        self.switch()
        me.waits = None

    def sleep(self, ticks: int) -> None:
        """Hold the current rank for a time."""
        self.at(self.now + ticks, self.current)
        self.switch()

    # Messages. ---------------------------------------------------------------

    def post_send(self, tensor: torch.Tensor, destination: int, channel: Any) -> Request:
        """Send from the current rank on a channel to a rank; its request."""
        request = Request(self, self.current, "send", destination, tensor)
        if tensor.nbytes <= self.eager:
            self._leave(request)
        receive = self.taker(destination, channel)
        if receive is not None:
            self.deliver(request, receive)
        else:
            self._enqueue(self.sends[destination], channel, request)
        return request

    def _leave(self, send: Request) -> None:
        """An eager message is on its way, and its buffer the rank's own again."""
        tensor = send.tensor
        send.tensor = tensor.detach().clone()
        send.done = self.now
        send.arrives = self.carry(self.now, send.rank.number, send.peer, tensor.nbytes)

    def taker(self, destination: int, channel: Any) -> Request | None:
        """The receive that a message on a channel goes to: the first that was posted."""
        waiting = self.receives[destination].get(channel)
        anybody = self.anybody[destination]
        if anybody:
            wanted = sort_of(channel)
            for place, (sort, request) in enumerate(anybody):
                if sort == wanted:
                    if waiting and waiting[0].order < request.order:
                        break
                    del anybody[place]
                    return request
        return waiting.popleft() if waiting else None

    def post_receive(self, tensor: torch.Tensor, source: int, channel: Any) -> Request:
        """Receive into a tensor of the current rank; its request."""
        me = self.current
        request = Request(self, me, "recv", source, tensor)
        sent = self.sends[me.number].get(channel)
        if sent:
            self.deliver(sent.popleft(), request)
        else:
            self._enqueue(self.receives[me.number], channel, request)
        return request

    def post_receive_from_anybody(self, tensor: torch.Tensor, sort: Any) -> Request:
        """Receive the message that was sent first, of those with a tag in a group."""
        me = self.current
        request = Request(self, me, "recv", ANY, tensor)
        queues = self.sends[me.number]
        first = min(
            (queue for channel, queue in queues.items() if queue and sort_of(channel) == sort),
            key=lambda queue: queue[0].order,
            default=None,
        )
        if first is not None:
            self.deliver(first.popleft(), request)
        else:
            self.order = request.order = self.order + 1
            self.anybody[me.number].append((sort, request))
        return request

    def _enqueue(self, queues: dict[Any, deque[Request]], channel: Any, request: Request) -> None:
        self.order = request.order = self.order + 1
        queue = queues.get(channel)
        if queue is None:
            queue = queues[channel] = deque()
        queue.append(request)

    def deliver(self, send: Request, receive: Request) -> None:
        """A message has both its ends: when it arrives, and what is in it."""
        theirs = send.tensor
        mine = receive.tensor
        nbytes = theirs.nbytes
        if theirs.dtype is not mine.dtype or nbytes != mine.nbytes:
            receive.peer = send.rank.number
            self.misfits.append(Misfit(send, receive))
            return
        source, destination = send.rank.number, receive.rank.number
        done = send.arrives
        if done is None:
            done = send.done = self.carry(self.now, source, destination, nbytes)
        self.messages += 1
        self.bytes += nbytes
        if self.ledger is not None:
            self.ledger.note(source, destination, theirs)
        if mine.requires_grad or theirs.requires_grad:
            # no gradient comes with a message
            mine, theirs = mine.detach(), theirs.detach()
        mine.copy_(theirs)
        receive.peer = source
        receive.done = done
        if done is None:
            self.travelling.add(send, receive)
            return
        if send.waiter is not None:
            self.at(done, send.waiter)
        if receive.waiter is not None:
            self.at(done, receive.waiter)
