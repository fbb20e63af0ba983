"""What a script's ranks have done so far, in numbers that do not grow with the run."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import torch

from headcount.core.events import ANY
from headcount.core.verdict import Site
from headcount.trace.trace import Operation, given_elements

__all__ = ["CallTally", "LongestWait"]

#: A place at which a rank calls something: the rank, what it calls, and the line.
Place = tuple[int, str, str]


#: Combinations of lines of which the first call is kept: the first may be right, as DDP's beside
#: those by which ``Join`` stands in for a rank that is done.
_APART = 3


@dataclass(frozen=True)
class LongestWait:
    """The rank that others waited for longest at one line, as far as they waited for it to call.

    Attributes:
        rank: the rank that waited.
        peer: the rank that it waited for.
        kind: what it waited in.
        site: the line.
        seconds: how long, in all.
        times: how often.
    """

    rank: int
    peer: int
    kind: str
    site: Site
    seconds: float
    times: int


class CallTally:
    """A tally of the operations of all ranks.

    Args:
        keeps: how many operations of each rank the record keeps.

    Attributes:
        calls: how many operations of each kind a rank has begun, by rank and kind.
        bytes: how many bytes a rank has put into its operations.
        messages: how many ends of messages a rank has begun, by rank, ``send`` or ``recv``, and
            peer.
        last: what a rank has begun last, and its line.
        last_common: the last collective call that all members of its group have made, by rank:
            its kind, its line, and for which time; 0 if that is not known.
        apart: of those without a root that they have made at different lines, the first of each
            of a few combinations of lines; calls that make groups do not count.
    """

    def __init__(self, keeps: int) -> None:
        self.keeps = keeps
        self.calls: Counter[tuple[int, str]] = Counter()
        self.bytes: Counter[int] = Counter()
        self.messages: Counter[tuple[int, str, int]] = Counter()
        self.last: dict[int, tuple[str, str]] = {}
        self.last_common: dict[int, tuple[str, str, int]] = {}
        self.apart: dict[tuple[tuple[int, str], ...], dict[int, tuple[str, str, int]]] = {}
        self._places: Counter[Place] = Counter()
        self._groups: dict[Place, set[str]] = defaultdict(set)
        self._waits: dict[tuple[int, int, str, Site], list[float]] = defaultdict(lambda: [0.0, 0])

    def posted(self, op: Operation) -> None:
        """Count an operation that has begun."""
        self.calls[op.rank, op.kind] += 1
        place = _place(op)
        self._places[place] += 1
        self.last[op.rank] = place[1:]
        self._groups[place].add(op.group)
        self.bytes[op.rank] += _bytes(op)
        if op.is_message:
            self.messages[op.rank, op.kind, op.peer] += 1

    def done(self, op: Operation) -> None:
        """Add up how long a rank has waited for others to call what it had called."""
        if op.blocked is None:
            return
        last = op.partner or max(op.callers.values(), key=attrgetter("posted"), default=op)
        if last.rank != op.rank and last.posted > op.blocked:
            found = self._waits[op.rank, last.rank, op.kind, op.blocked_site or op.site]
            found[0] += (last.posted - op.blocked) / 1e9
            found[1] += 1

    def called(self, calls: Mapping[int, Operation]) -> None:
        """Note the last call that all members of a group have made."""
        places = {rank: _place(op) for rank, op in calls.items()}
        # who is no member of a group that it makes tells nothing of it, so that nobody can count
        self.last_common = {
            rank: (place[1], place[2], 0 if calls[rank].makes_group else self._places[place])
            for rank, place in places.items()
        }
        # a root often makes its call in a branch of its own, and so does who makes a group
        branches = any(op.peer != ANY or op.makes_group for op in calls.values())
        if (
            not branches
            and len(self.apart) < _APART
            and len({op.site for op in calls.values()}) > 1
        ):
            lines = tuple((rank, str(op.site)) for rank, op in sorted(calls.items()))
            self.apart.setdefault(lines, self.last_common)

    def passes(self, rank: int, kind: str, site: Site) -> int:
        """Return how often a rank has called something at a line."""
        return self._places[rank, kind, str(site)]

    def in_same_groups(self, rank: int, peer: int, kind: str, site: Site) -> bool:
        """Return whether two ranks have called something at a line in the same groups."""
        mine, theirs = ((one, kind, str(site)) for one in (rank, peer))
        return self._groups[mine] == self._groups[theirs]

    def longest_wait(self) -> LongestWait | None:
        """Return where a rank has waited longest for another one, if one has."""
        if not self._waits:
            return None
        (rank, peer, kind, site), (seconds, times) = max(
            self._waits.items(), key=lambda item: item[1][0]
        )
        return LongestWait(rank, peer, kind, site, seconds, int(times))


def _place(op: Operation) -> Place:
    return op.rank, op.kind, _text(op.site.file, op.site.line)


@functools.lru_cache(maxsize=4096)
def _text(file: str, line: int) -> str:
    return str(Site(file, line))


def _bytes(op: Operation) -> int:
    """Return the bytes that a rank gives away by an operation."""
    if op.is_message:
        return op.nbytes if op.kind == "send" else 0
    members = len(op.callers) or 1
    return sum(
        given_elements(op.kind, one, members) * _itemsize(one.dtype) for one in op.signatures
    )


@functools.lru_cache(maxsize=64)
def _itemsize(dtype: str) -> int:
    found = getattr(torch, dtype, None)
    return found.itemsize if isinstance(found, torch.dtype) else 1
