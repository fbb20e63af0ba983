"""Who holds up a job that stands still: the ranks that others wait for, and that wait for nobody.

That ranks wait is read, and established.  That they will wait for ever is not, where the rank that
they wait for is free to come: it may only be slow.  Such a rank is accused once the others have
waited far longer than the job has ever paused, and named with a question mark until then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from headcount.core.verdict import Grade, Hang, HangKind
from headcount.script.attach.pace import patience_with, waited
from headcount.script.attach.readings import JobReadings
from headcount.script.attach.stacks import own_frame
from headcount.script.attach.waits import MESSAGES, JobWaits
from headcount.script.explain import call_kind
from headcount.trace.deadlock import cycle_of, held_up, waiters

__all__ = ["Verdict", "verdicts_of"]


@dataclass(frozen=True)
class Verdict(Hang):
    """What holds up a part of the job, and since when.

    Attributes:
        seconds: how long ranks have waited, as far as it is known.
        patience: how long they would have to wait before the culprits are accused; 0 where it is
            proved that these will not come, and where waiting would tell nothing.
    """

    seconds: float = 0.0
    patience: float = 0.0

    @property
    def is_fault(self) -> bool:
        """Whether it is a fault, and not perhaps a rank that is slow."""
        return self.grade is not Grade.OPEN


def verdicts_of(readings: JobReadings, found: JobWaits) -> list[Verdict]:
    """Return what holds up the job, culprits that hold up most ranks first."""
    waits = found.waits
    awaited = {peer for wait in waits.values() for peer in wait.peers}
    # one that waits for nobody that is known is the end of a chain as well
    free = sorted(rank for rank in awaited if rank not in waits or not waits[rank].peers)
    behind_of = waiters(waits)
    verdicts = []
    for group in _by_place(readings, free):
        held = held_up(behind_of, group)
        differs = _called_otherwise(found, group, held)
        kind = HangKind.ENTERED_DIFFERENTLY if differs else HangKind.NEVER_ENTERED
        is_final = all(_will_not_come(readings, rank) for rank in group) or differs
        is_open = any(rank in waits for rank in group) and not differs
        verdicts.append(_verdict(readings, found, kind, group, held, not is_final, is_open))
    behind = held_up(behind_of, free)
    unknown = [rank for rank, wait in waits.items() if not wait.peers and rank not in awaited]
    rest = [rank for rank, wait in waits.items() if wait.peers and rank not in behind]
    verdicts += _differences(readings, found, [*rest, *unknown])
    accused = {rank for one in verdicts for rank in (*one.culprits, *one.held)}
    cycle = cycle_of({rank: waits[rank] for rank in rest if rank not in accused})
    if cycle:
        # what a rank has sent without waiting for it may be on its way: nothing records that
        may_come = any(waits[rank].call in MESSAGES for rank in cycle)
        verdicts.append(_verdict(readings, found, HangKind.CIRCLE, cycle, {*rest}, may_come))
    if not verdicts and unknown:
        verdicts += _all_entered(readings, found, unknown)
    return sorted(verdicts, key=lambda one: (not one.is_fault, -len(one.held), one.culprits))


def _verdict(
    readings: JobReadings,
    found: JobWaits,
    kind: HangKind,
    culprits: Sequence[int],
    held: Collection[int],
    may_come: bool,
    is_open: bool = False,
) -> Verdict:
    others = sorted({*held} - {*culprits})
    seconds = max((waited(readings, found, rank) for rank in (*others, *culprits)), default=0.0)
    may_come = may_come or not found.by_stack.keys().isdisjoint((*culprits, *held))
    patience = patience_with(readings, culprits) if may_come and not is_open else 0.0
    grade = Grade.SUPPORTED if patience else Grade.ESTABLISHED
    if is_open or seconds < patience:
        grade = Grade.OPEN
    gone = kind is HangKind.NEVER_ENTERED and all(map(readings.is_gone, culprits))
    ranks = tuple(culprits), tuple(others)
    return Verdict(kind, grade, *ranks, "gone" if gone else "", seconds, patience)


def _by_place(readings: JobReadings, ranks: Sequence[int]) -> list[list[int]]:
    """Return ranks by the line that they stand at, the few before the many."""
    places: defaultdict[object, list[int]] = defaultdict(list)
    for rank in ranks:
        reading = readings.last.get(rank)
        frame = own_frame(reading.frames) if reading else None
        place = (frame.file, frame.line) if frame else None
        places[place, _will_not_come(readings, rank)].append(rank)
    return sorted(places.values(), key=len)


def _will_not_come(readings: JobReadings, rank: int) -> bool:
    """Return whether a rank has ended, or has been stopped."""
    if rank not in readings.last:
        return readings.is_gone(rank)
    before, after = readings.first[rank], readings.last[rank]
    return after.has_ended or (before.is_stopped and after.is_stopped)


def _called_otherwise(found: JobWaits, ranks: Sequence[int], held: Collection[int]) -> bool:
    """Return whether ranks have made another call in the place of one that others wait in."""
    waiting = [found.calls[rank] for rank in held if rank in found.calls]
    return any(
        rank in found.rows[group, number] and found.rows[group, number][rank].name != name
        for group, number, name in {(call.group, call.number, call.name) for call in waiting}
        for rank in ranks
    )


def _differences(readings: JobReadings, found: JobWaits, ranks: Sequence[int]) -> Iterator[Verdict]:
    """Yield the calls that ranks which wait have made in different ways."""
    called = [found.calls[rank] for rank in ranks if rank in found.calls]
    sides: list[dict[object, list[int]]] = []
    for row in sorted({(call.group, call.number) for call in called}):
        kinds: dict[object, list[int]] = {}
        for rank, call in found.rows[row].items():
            kinds.setdefault(call_kind(call), []).append(rank)
        sides.append(kinds)
    stacks: dict[object, list[int]] = {}
    for rank in found.by_stack.keys() & {*ranks}:
        if found.by_stack[rank]:
            stacks.setdefault(found.waits[rank].call, []).append(rank)
    for kinds in (*sides, stacks):
        if len(kinds) > 1:
            least = min(map(len, kinds.values()))
            few = sorted(rank for one in kinds.values() if len(one) == least for rank in one)
            held = {rank for one in kinds.values() for rank in one}
            yield _verdict(readings, found, HangKind.ENTERED_DIFFERENTLY, few, held, False)


def _all_entered(readings: JobReadings, found: JobWaits, ranks: Sequence[int]) -> Iterator[Verdict]:
    """Yield the calls that all members have made, and that have ended on none."""
    rows: dict[object, list[int]] = defaultdict(list)
    for rank in ranks:
        call = found.calls.get(rank)
        if call or found.by_stack.get(rank):  # else it is in a group that nobody knows
            rows[(call.group, call.number) if call else None].append(rank)
    for row, waiting in rows.items():
        members = found.dumps.groups[row[0]] if isinstance(row, tuple) else range(readings.world)
        whole = sorted(members) == waiting
        kind = HangKind.NONE_LEFT
        yield _verdict(readings, found, kind, waiting, (), True, is_open=not whole)
