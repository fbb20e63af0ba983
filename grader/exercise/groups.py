"""Process groups that ranks return: what is compared of them, and the proof that they exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.exercise.cases import Case
from headcount.core.values import Opaque
from headcount.core.verdict import Diagnosis, Failure
from headcount.trace.trace import Trace

__all__ = ["NO_GROUP", "GroupOfRanks", "group_from_data", "group_of", "never_connected"]


@dataclass(frozen=True)
class GroupOfRanks(Opaque):
    """A process group, which is compared by its global ranks, in the order of ranks in it."""

    ranks: tuple[int, ...] = ()


#: ``None`` where it is compared with a group.
NO_GROUP = GroupOfRanks("None", "None")


def group_of(ranks: Iterable[int]) -> GroupOfRanks:
    """Return the group of some ranks."""
    members = tuple(ranks)
    text = f"the group of rank{'s' * (len(members) > 1)} {', '.join(map(str, members))}"
    return GroupOfRanks("a process group", text, members)


def group_from_data(data: Any) -> Any:
    """Return what :func:`grader.instruments.groups.group_as_data` has made data of."""
    kind, value = data
    return group_of(map(int, value)) if kind == "group" else value


def never_connected(
    groups: Callable[[Case], Sequence[Sequence[int]]],
) -> Callable[[Case, Trace], Failure | None]:
    """Return a proof that the groups which ranks should have made were made.

    A rank says itself which groups it has.  But members of a group connect, and for that they put
    their addresses into the judge's store.

    Args:
        groups: the groups of a case, each as its global ranks by rank in it.
    """

    def proof(case: Case, trace: Trace) -> Failure | None:
        if trace.connected is None:
            return None
        for ranks in groups(case):
            # the group of all ranks is there before the call
            if len(ranks) < case.n and tuple(ranks) not in trace.connected:
                return Failure(
                    Diagnosis.WRONG_VALUE,
                    f"rank {ranks[0]} returns {group_of(ranks).text}, but its ranks have never"
                    " connected: dist.new_group makes a group",
                    ranks[0],
                )
        return None

    return proof
