"""Validation of the events that a rank reports, before the judge computes with them.

The recorder runs in the student's process, so that anything may come over a rank's socket.  The
frames have the right types when they get here, within the bounds of their fields
(:mod:`headcount.core.events`); this module checks what they mean.  An event that
passes may still be false, but it names only ranks, operations, groups and words that exist, and
a rank reports no more of them than an honest one would.
"""

from __future__ import annotations

from collections.abc import Sequence

from headcount.core.events import (
    ANY,
    INIT,
    Blocked,
    Completed,
    Expired,
    Failed,
    Grouped,
    Handling,
    Held,
    Inspected,
    Paused,
    Polled,
    Posted,
    Remarked,
    Replicas,
    Same,
    Seen,
    Violated,
)
from headcount.core.verdict import Diagnosis
from headcount.core.wire import BrokenFrame, TooManyMessages
from headcount.rank.arguments import COLLECTIVES
from headcount.rank.recorder import EVENTS, GROUPS, OPERATIONS, REMARKS
from headcount.trace.message_matcher import MessageMatcher

__all__ = ["EventValidator"]

#: Limit on the waiting threads and callbacks of one rank, beside its operations.
THREADS = 10_000

#: The violations that the recorder itself can report.
_FAULTS = frozenset(one.value for one in Diagnosis if one.reported_by_rank)

_KINDS = frozenset({"send", "recv", "new_group", INIT, *COLLECTIVES.values()})


class EventValidator:
    """The validator of the events of one call.

    Args:
        matcher: takes the events that are valid.
        allowed: the collectives that may be called; None allows all.
        subgroups: whether ranks may make groups.
        watched: whether the contents of tensors were asked for.
        views: by rank, the members of each group as that rank reports them; ranks may disagree,
            which is a mistake and no forgery.  Groups outlive a call.
        inside: whether messages may be those inside built-in collectives of simulated ranks, which
            have groups of their own.
        pauses: whether the case lets ranks pause.
        limited: whether there are limits on how much a rank reports; there are none on a person's
            own script.
        replicas: whether it was asked what ranks hold of their replicas.
    """

    def __init__(
        self,
        matcher: MessageMatcher,
        allowed: frozenset[str] | None,
        subgroups: bool,
        watched: bool,
        views: list[dict[str, list[int]]] | None = None,
        inside: bool = False,
        pauses: bool = False,
        limited: bool = True,
        replicas: bool = False,
    ) -> None:
        self._matcher = matcher
        self._allowed = allowed
        self._subgroups = subgroups
        self._watched = watched
        self._inside = inside
        self._pauses = pauses
        self._limited = limited
        self._replicated = replicas
        self._events = [0] * matcher.size
        self._remarks = [0] * matcher.size
        self._views = views if views is not None else [{} for _ in range(matcher.size)]

    def validate(self, rank: int, event: object) -> None:
        """Check an event.

        Raises:
            BrokenFrame: the recorder would never report it.
        """
        # the most frequent kinds come first
        if isinstance(event, Posted):
            self._count(rank)
            self._posted(rank, event)
            return
        if isinstance(event, (Completed, Blocked, Expired, Failed, Polled)):
            if not 0 <= event.op < len(self._matcher.operations[rank]):
                raise BrokenFrame(f"news of operation {event.op}, which it never began")
            # an honest rank may poll very often, and nothing more is kept of it
            if not isinstance(event, Polled):
                self._count(rank)
            return
        self._count(rank)
        if isinstance(event, Inspected):
            self._inspected(rank, event)
        elif isinstance(event, Grouped):
            self._grouped(rank, event)
        elif isinstance(event, Violated):
            if event.diagnosis not in _FAULTS:
                raise BrokenFrame("a fault that no recorder finds")
        elif isinstance(event, Remarked):
            self._remarks[rank] += 1
            if self._remarks[rank] > REMARKS:
                raise BrokenFrame("more remarks than a recorder makes")
        elif isinstance(event, Replicas):
            self._replicas(rank, event)
        elif isinstance(event, Same):
            ranks = range(self._matcher.size)
            if rank not in event.members or not all(one in ranks for one in event.members):
                raise BrokenFrame("a value that ranks should share which are not there")
        elif isinstance(event, Handling):
            if not 0 <= event.op == len(self._matcher.operations[rank]) - 1:
                raise BrokenFrame("an exception that is handled in another operation than the last")
        elif isinstance(event, Paused) and not self._pauses:
            raise BrokenFrame("a pause, which the case does not know")
        elif isinstance(event, (Held, Seen)) and not self._watched:
            raise BrokenFrame("contents of tensors, which nobody has asked for")

    def _count(self, rank: int) -> None:
        self._events[rank] += 1
        if self._limited and self._events[rank] > EVENTS:
            raise TooManyMessages(
                f"tells of more than {EVENTS:,} events in one call: it posts, waits or marks in a"
                " loop that goes on for too long"
            )

    def _posted(self, rank: int, event: Posted) -> None:
        expected = len(self._matcher.operations[rank])
        if self._limited and expected >= OPERATIONS:
            raise TooManyMessages(
                f"begins more than {OPERATIONS:,} operations in one call; that many are not"
                " followed: send more at once"
            )
        if event.op != expected:
            raise BrokenFrame(f"operation {event.op} where operation {expected} comes next")
        if event.kind not in _KINDS:
            raise BrokenFrame("an operation of no kind that there is")
        known = self._matcher.groups.get(event.group)
        members: Sequence[int] = self._views[rank].get(event.group) or (
            known.members if known else ()
        )
        message = event.kind in ("send", "recv")
        if not members and message and self._inside:
            members = range(self._matcher.size)
        if rank not in members:
            raise BrokenFrame("an operation in a group that it is not in")
        if event.peer not in members and (event.kind == "send" or event.peer != ANY):
            raise BrokenFrame(f"an operation with rank {event.peer}, which is not in the group")
        if message and event.peer == rank:
            raise BrokenFrame("a message to itself, which gloo refuses")
        if event.kind == "new_group":
            refused = not self._subgroups
        elif event.kind == INIT:
            refused = not self._matcher.is_script
        else:
            refused = not message and self._allowed is not None and event.kind not in self._allowed
        if refused:
            raise BrokenFrame(f"a call of {event.kind}, which the recorder refuses")
        for signature in event.signatures:
            for numbers in (signature.gives, signature.takes):
                if len(numbers) not in (0, 1, len(members)):
                    raise BrokenFrame("a collective for ranks that are not in the group")
        if len(event.shapes) > max(1, len(event.signatures)):
            raise BrokenFrame("shapes of tensors that are not there")

    def _inspected(self, rank: int, event: Inspected) -> None:
        known = len(self._matcher.operations[rank])
        if self._limited and (
            len(event.idle) + len(event.callbacks) + sum(map(len, event.callbacks))
            > known + THREADS
        ):
            raise TooManyMessages(f"has more than {THREADS:,} threads and callbacks that wait")
        if not all(0 <= op < known for ops in event.callbacks for op in ops):
            raise BrokenFrame("a callback of an operation that it never began")
        if sum(1 + len(keys) for _, keys, _, _ in event.store) > THREADS:
            raise TooManyMessages(f"waits for more than {THREADS:,} entries of the store")

    def _replicas(self, rank: int, event: Replicas) -> None:
        if not self._replicated:
            raise BrokenFrame("contents of replicas, which nobody has asked for")
        ranks = range(self._matcher.size)
        if len(event.groups) != len(event.calls) or not all(
            rank in members and all(one in ranks for one in members) for members in event.groups
        ):
            raise BrokenFrame("replicas on ranks that are not there")
        if not all(value.group < len(event.groups) for value in event.values):
            raise BrokenFrame("replicas in a group that it does not name")

    def _grouped(self, rank: int, event: Grouped) -> None:
        members, size = event.members, self._matcher.size
        if (event.backend or event.description) and not self._matcher.is_script:
            raise BrokenFrame("a backend or a description, which only scripts give")
        if rank not in members or len(set(members)) != len(members):
            raise BrokenFrame("a group that it is not in")
        if not all(0 <= member < size for member in members):
            raise BrokenFrame("a group of ranks that are not there")
        many = self._limited and len(self._views[rank]) >= GROUPS
        if many and event.name not in self._views[rank]:
            raise BrokenFrame(f"more than {GROUPS} groups, which the recorder refuses")
        self._views[rank][event.name] = members
