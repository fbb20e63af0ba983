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
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import greenlet
import torch

from grader.simulation.ends import Misfit, Rank, Request, sort_of
from grader.simulation.network import Network
from grader.traffic.events import ANY

if TYPE_CHECKING:
    from grader.simulation.builtin import Work

__all__ = ["Hub"]

# looked at in every switch
_FLOAT = torch.float32
_grad_enabled = torch.is_grad_enabled
_default_dtype = torch.get_default_dtype


class Hub:
    """Runs ranks until all have ended, one has raised, or none can go on.

    Args:
        functions: one per rank, called without arguments.
        network: what their messages travel through.
        eager: bytes up to which a message leaves its buffer at once, whether
            anybody receives it or not.

    Attributes:
        now: ticks.
        current: the rank that runs.
        messages, bytes: that were sent and received so far.
    """

    def __init__(
        self, functions: Sequence[Callable[[], Any]], network: Network, eager: int = -1
    ) -> None:
        self.size = len(functions)
        self.now = 0
        self.messages = 0
        self.bytes = 0
        self.eager = eager
        self._carry = network.carry
        self._main = greenlet.getcurrent()
        self.ranks = [
            Rank(number, greenlet.greenlet(self._live(function), self._main))
            for number, function in enumerate(functions)
        ]
        #: the ranks, and after them what runs beside them, see :meth:`start`
        self._strands = list(self.ranks)
        self._idle: list[int] = []
        self.current = self.ranks[0]
        #: by destination, what was sent, and what is waited for, by channel
        self.sends: list[dict[Any, deque[Request]]] = [{} for _ in functions]
        self.receives: list[dict[Any, deque[Request]]] = [{} for _ in functions]
        #: by destination, what is waited for from any rank: (tag and group, request)
        self.anybody: list[list[tuple[Any, Request]]] = [[] for _ in functions]
        self._orders = itertools.count(1)
        self._ready = deque(range(self.size))
        self._moments: list[int] = []
        self._due: dict[int, list[int]] = {}
        self._polling: list[int] = []
        #: how much had happened when those who poll looked last, of messages and completions
        self._happened = 0
        self._completed = 0
        self._failed = False

    # Running. ----------------------------------------------------------------

    def run(self) -> None:
        """Run until nothing can go on; what became of each rank is in :attr:`ranks`.

        Those that wait for ever are left where they wait, to be looked at; see :meth:`end`.
        """
        collecting = gc.isenabled()
        # thousands of stacks to look through, and nothing to find
        gc.disable()
        try:
            while not self._failed and (following := self._next()) is not None:
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
                self._failed = True
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

    def _resume(self, rank: Rank) -> None:
        self.current = rank
        rank.begun = True
        rank.switch()

    def _switch(self) -> None:
        """Let others run until somebody makes the current rank go on."""
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

    def _switch_with_modes(self) -> None:
        """Switch when the current rank has set modes of torch's that are not others'."""
        grad, dtype = _grad_enabled(), _default_dtype()
        torch.set_grad_enabled(True)
        torch.set_default_dtype(_FLOAT)
        self._switch()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)

    def _at(self, moment: int, rank: Rank) -> None:
        due = self._due.get(moment)
        if due is None:
            self._due[moment] = [rank.index]
            heapq.heappush(self._moments, moment)
        else:
            due.append(rank.index)

    # Waiting. ----------------------------------------------------------------

    def wait(self, request: Request | Work) -> None:
        """Hold the current rank until a request is complete."""
        done = request.done
        if done is None:
            request.waiter = self.current
        elif done > self.now:
            self._at(done, self.current)
        else:
            return
        me = self.current
        me.waits = request
        self._switch()
        me.waits = None

    def complete(self, request: Work) -> None:
        """What a request stands for is done now."""
        request.done = self.now
        self._completed += 1
        if request.waiter is not None:
            self._at(self.now, request.waiter)

    def receive(self, tensor: torch.Tensor, source: int, channel: Any) -> None:
        """Receive into a tensor of the current rank, and wait for it."""
        me = self.current
        sent = self.sends[me.number].get(channel)
        if not sent:
            self.wait(self.post_receive(tensor, source, channel))
            return
        send = sent.popleft()
        theirs = send.tensor
        nbytes = theirs.nbytes
        if theirs.dtype is not tensor.dtype or nbytes != tensor.nbytes:
            raise Misfit(send, Request(self, me, "recv", source, tensor))
        send.done = done = self._carry(self.now, source, me.number, nbytes)
        self.messages += 1
        self.bytes += nbytes
        tensor.copy_(theirs)
        if send.waiter is not None:
            self._at(done, send.waiter)
        if done > self.now:
            self._at(done, me)
            self._switch()

    def give_way(self, request: Request | Work) -> None:
        """Let the others run, and the clock go on if they all wait, or ask like the current rank.

        ``request`` is what it asks for; if nothing happens any more, it waits for that.
        """
        me = self.current
        if request.done is not None and request.done not in self._due:
            # the clock has to stop there, even if nobody waits for it
            self._due[request.done] = []
            heapq.heappush(self._moments, request.done)
        self._polling.append(me.index)
        me.waits = request
        self._switch()
        me.waits = None

    def sleep(self, ticks: int) -> None:
        """Hold the current rank for a time."""
        self._at(self.now + ticks, self.current)
        self._switch()

    # Messages. ---------------------------------------------------------------

    def post_send(self, tensor: torch.Tensor, destination: int, channel: Any) -> Request:
        """Send from the current rank on a channel to a rank; its request."""
        request = Request(self, self.current, "send", destination, tensor)
        receive = self._taker(destination, channel)
        if receive is not None:
            self._deliver(request, receive)
        else:
            self._enqueue(self.sends[destination], channel, request)
        return request

    def _taker(self, destination: int, channel: Any) -> Request | None:
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
            self._deliver(sent.popleft(), request)
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
            self._deliver(first.popleft(), request)
        else:
            request.order = next(self._orders)
            self.anybody[me.number].append((sort, request))
        return request

    def _enqueue(self, queues: dict[Any, deque[Request]], channel: Any, request: Request) -> None:
        request.order = next(self._orders)
        queue = queues.get(channel)
        if queue is None:
            queue = queues[channel] = deque()
        queue.append(request)

    def _deliver(self, send: Request, receive: Request) -> None:
        """A message has both its ends: when it arrives, and what is in it."""
        theirs = send.tensor
        mine = receive.tensor
        nbytes = theirs.nbytes
        if theirs.dtype is not mine.dtype or nbytes != mine.nbytes:
            raise Misfit(send, receive)
        done = self._carry(self.now, send.rank.number, receive.rank.number, nbytes)
        self.messages += 1
        self.bytes += nbytes
        mine.copy_(theirs)
        receive.peer = send.rank.number
        send.done = receive.done = done
        if send.waiter is not None:
            self._at(done, send.waiter)
        if receive.waiter is not None:
            self._at(done, receive.waiter)
