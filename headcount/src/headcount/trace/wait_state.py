"""What must be known of ranks to say who waits for whom; it is read and never written.

:class:`headcount.trace.message_matcher.MessageMatcher` has it, which builds it of ranks' events.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from headcount.core.events import Inspected
from headcount.core.verdict import Site
from headcount.trace.trace import Operation

__all__ = ["Awaited", "WaitState"]


class Awaited(NamedTuple):
    """The operation that one thread of a rank waits for.

    Attributes:
        op: the operation.
        site: the line on which the thread waits.
        limit: milliseconds after which it gives up; 0 means never.
    """

    op: Operation
    site: Site
    limit: int


class GroupMembers(Protocol):
    """A process group."""

    @property
    def members(self) -> Sequence[int]:
        """Its global ranks."""


class WaitState(Protocol):
    """The operations of all ranks, and what each rank waits for."""

    @property
    def size(self) -> int:
        """The number of ranks."""

    @property
    def is_script(self) -> bool:
        """Whether the ranks run a person's own script, and not a function."""

    @property
    def operations(self) -> Sequence[Sequence[Operation]]:
        """The operations by rank, in program order."""

    @property
    def waits(self) -> Sequence[Mapping[int, Awaited]]:
        """By rank and thread, what the thread waits for now; thread 0 has called the function."""

    @property
    def inspected(self) -> Sequence[Inspected | None]:
        """By rank, what its other threads do, if it has said that since its last event."""

    @property
    def polling(self) -> Mapping[int, Collection[int]]:
        """By rank, the operations that it asks about repeatedly."""

    @property
    def broken(self) -> Sequence[Collection[str]]:
        """By rank, the groups on which it has given up a message."""

    @property
    def ended(self) -> Set[int]:
        """The ranks that have returned or whose process is gone."""

    @property
    def killed(self) -> Set[int]:
        """The ranks that the judge has killed."""

    @property
    def stored(self) -> Container[str]:
        """The keys of the store that have values."""

    @property
    def groups(self) -> Mapping[str, GroupMembers]:
        """The process groups, by name."""

    @property
    def ready(self) -> Sequence[Operation]:
        """The first waiting wildcard of each mailbox that has a message for it."""

    def missing(self, op: Operation) -> Sequence[int]:
        """Return the members of its group that have not made the collective call of ``op`` yet."""
