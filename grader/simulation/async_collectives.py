"""How any collective of a simulated process group is called, run, and waited for.

A collective runs when it is called, in the greenlet of its rank.  With ``async_op=True`` it
runs beside that, in a greenlet that has the ports of the rank; and so do those that the rank
calls after it on the same group before it is complete, one after the other: all ranks do the
collectives of a group in the same order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grader.core.events import ANY
from grader.core.source_locations import line_here
from grader.core.verdict import Site
from grader.rank.addressing import destroyed_text, require_rank
from grader.rank.signatures import signatures
from grader.simulation.builtin import Builtins, Work
from grader.simulation.collective_matching import Call
from grader.simulation.communicator import Communicator, channel_name

if TYPE_CHECKING:
    from grader.simulation.mailboxes import Hub

__all__ = ["Begun", "Run"]

#: Runs a collective for one rank.
Run = Callable[[Communicator], None]


class Begun:
    """What the collective methods of a group need of it; they are in classes above this."""

    _hub: Hub
    _members: list[int]
    _places: dict[int, int]
    _name: str

    def _found(self, builtins: Builtins) -> None:
        """The group is made."""
        self._builtins = builtins
        #: by place, what runs beside the rank, and what is to run after it
        self._queues: dict[int, deque[tuple[Run, Communicator, Work]]] = {}
        #: by rank, the line on which it has destroyed the group
        self._destroyed: dict[int, int] = {}
        self._seen_from = {0: self._members}
        builtins.found(self._name, self._members)

    def destroy(self, line: int) -> None:
        """The rank that runs has destroyed the group; it goes on for the others."""
        self._require_there()
        self._destroyed[self._hub.current.number] = line

    def _require_there(self) -> None:
        line = self._destroyed.get(self._hub.current.number)
        if line is not None:
            raise ValueError(destroyed_text(self._members, line))

    def _allow(self, kind: str) -> None:
        self._require_there()
        self._builtins.require_allowed(self._hub.current.number, kind)

    def _algorithm(self, kind: str) -> Callable[..., None]:
        return self._builtins.run[kind]

    def _begin(
        self,
        kind: str,
        options: Any,
        run: Run,
        results: list[Any],
        *,
        signed: tuple[Any, ...],
        root: int | None = None,
        detail: str = "",
    ) -> Work:
        """Run a collective, or see to it that it will be.

        ``signed`` is the method and its arguments, see :mod:`grader.rank.signatures`.
        """
        hub, builtins = self._hub, self._builtins
        me = hub.current.number
        place, size = self._places[me], len(self._members)
        if root is not None:
            require_rank(root, size)
        whose, first = (ANY, -1) if root is None else (self._members[root], root)
        method, *arguments = signed
        found = signatures(method, kind, arguments, rank=me, place=place, size=size, root=first)
        call = Call(me, kind, self._name, whose, detail, found, Site(*line_here()[:2]))
        builtins.join(call)
        work = Work(hub, hub.current, call, results)
        comm = self._communicator(place, root or 0)
        queue = self._queues.get(place)
        if queue is not None:
            queue.append((run, comm, work))
        elif getattr(options, "asyncOp", True):
            self._queues[place] = deque([(run, comm, work)])
            hub.start(lambda: self._work_off(place))
        else:
            builtins.inside[me] = call
            try:
                run(comm)
            finally:
                del builtins.inside[me]
            hub.complete(work)
        return work

    def _work_off(self, place: int) -> None:
        queue = self._queues[place]
        while queue:
            run, comm, work = queue[0]
            run(comm)
            queue.popleft()
            self._hub.complete(work)
        del self._queues[place]

    def _communicator(self, place: int, root: int) -> Communicator:
        """For a collective with a root, the ranks are counted from there."""
        members = self._seen_from.get(root)
        if members is None:
            members = self._seen_from[root] = self._members[root:] + self._members[:root]
        size = len(members)
        return Communicator(self._hub, members, (place - root) % size, channel_name(self._name))
