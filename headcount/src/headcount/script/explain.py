"""Why a job has stopped, from the dumps of PyTorch's flight recorder: ``headcount explain``.

In every group, the calls of its members are laid side by side by their numbers.  The first number
at which they differ, or at which some members wait and others have called nothing, is where the
group went wrong.  Of several groups, those come first whose missing ranks wait for nobody: all
others wait behind them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace

from headcount.core.errors import RequestError
from headcount.core.verdict import Grade, Hang, HangKind, Wait, folded
from headcount.script.report import wait_lines, wait_object, wrapped
from headcount.trace.deadlock import cycle_of, held_up, waiters
from headcount.trace.flight_recorder import DEFAULT_GROUP, DumpedCall, Dumps

__all__ = [
    "Divergence",
    "Explanation",
    "call_kind",
    "explain",
    "explanation_json",
    "explanation_text",
]

#: Collectives of which the members give tensors of different sizes, each its own.
_UNEVEN = frozenset({"scatter", "gather", "all_to_all", "all_to_all_single", "reduce_scatter_v"})

#: Collectives that end on no member before all have called them.
_TOGETHER = frozenset({"all_reduce", "all_reduce_barrier", "barrier", "_all_gather_base"})

#: Nanoseconds by which the clocks of two machines may differ.
_SKEW = 60 * 10**9

#: Causes of which the one that holds up most is looked for: each may hold up all ranks.
_WEIGHED = 64

#: Lines of ranks that wait, and groups that wait behind others, which are shown.
_SHOWN = 8


@dataclass(frozen=True)
class Divergence:
    """Where the members of a group part.

    Attributes:
        group: the group, in words.
        text: what is wrong there, in a sentence.
        waiting: the ranks that wait there.
        awaited: the ranks that they wait for; none where all have called the same.
        differs: whether its members have called different things: then all of them are both.
        few: of these the fewest, or all where nobody is fewer.
    """

    group: str
    text: str
    waiting: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    differs: bool = False
    few: tuple[int, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """What the dumps say.

    Attributes:
        faults: where groups part, the causes before what waits behind them.
        causes: how many of the faults are causes.
        hang: who holds up whom; None if there is no fault.
        waits: by rank, what it waited for when its dump was written.
        cycle: ranks that wait for each other, in a circle.
        gaps: what the dumps do not say, and what would make them say it.
        since: who has gone on since earlier dumps, and who has not; empty if there are none.
    """

    faults: tuple[Divergence, ...]
    causes: int
    hang: Hang | None
    waits: tuple[Wait, ...]
    cycle: tuple[int, ...]
    gaps: tuple[str, ...]
    since: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether there is a fault, and not perhaps a rank that is slow."""
        return bool(self.faults) and (self.hang is None or self.hang.grade is not Grade.OPEN)


def explain(dumps: Dumps, before: Dumps | None = None) -> Explanation:
    """Find where the members of each group part, who waits for whom, and who for nobody.

    Args:
        dumps: of a job.
        before: earlier ones of the same job.  A rank that has gone on since then waits for this
            moment only, as far as anybody can know: nothing is concluded from its waits.

    Raises:
        RequestError: those are later, or of another job.
    """
    moved = _moved(before, dumps) if before is not None else {}
    held = _collectives_by_group(dumps)
    found = [fault for group in dumps.groups for fault in _divergences(dumps, group, held[group])]
    ends = _ends(dumps)
    found += _messages(dumps, ends)
    found = [fault for fault in found if fault.differs or moved.keys().isdisjoint(fault.waiting)]
    waits = {wait.rank: wait for wait in _waits(dumps, held, ends) if wait.rank not in moved}
    found += _unheard(dumps, waits, {rank for fault in found for rank in fault.awaited})
    cycle = cycle_of(waits)
    circle = {*cycle}

    def is_cause(fault: Divergence) -> bool:
        if not fault.awaited:  # all have called; they may be held up by an earlier call
            return not any(waits[rank].peers for rank in fault.waiting if rank in waits)
        ring = {*fault.waiting, *fault.awaited}
        return fault.differs or not waits.keys() >= {*fault.awaited} or ring <= circle

    parts: tuple[list[Divergence], list[Divergence]] = ([], [])
    for fault in found:
        parts[is_cause(fault)].append(fault)
    effects, causes = parts if parts[1] else parts[::-1]
    behind = waiters(waits)

    def weight(fault: Divergence) -> tuple[bool, int, bool]:
        # what is known of both sides comes before what is concluded from a dump that is not there,
        # then who holds up more, and who waits for culprits alone before who waits for others too
        free = [rank for rank in fault.awaited if rank not in waits]
        held = held_up(behind, free or fault.awaited) if len(causes) <= _WEIGHED else ()
        mixed = not waits.keys().isdisjoint(fault.awaited)
        return not dumps.calls.keys() >= {*fault.awaited}, -len(held), mixed

    causes.sort(key=weight)
    older = _older(dumps)
    hang = _hang(dumps, causes, waits, cycle, moved) if causes else None
    return Explanation(
        (*causes, *effects),
        len(causes),
        replace(hang, grade=Grade.OPEN) if hang and older else hang,
        tuple(waits.values()),
        tuple(cycle),
        (*older, *_gaps(dumps, held, {rank for fault in found for rank in fault.awaited})),
        _since(dumps, before, moved) if before is not None else "",
    )


def _hang(
    dumps: Dumps,
    causes: Sequence[Divergence],
    waits: Mapping[int, Wait],
    cycle: list[int],
    moved: Collection[int],
) -> Hang:
    """Return who holds up whom: what the first cause says, and who waits behind it."""
    first = causes[0]
    kind, grade, fate = HangKind.NEVER_ENTERED, Grade.SUPPORTED, ""
    awaited = {rank for wait in waits.values() for rank in wait.peers}
    free = sorted(awaited - waits.keys() - {*moved})
    # a rank that has left no dump may have called, and is no culprit where another one is known
    culprits = [rank for rank in free if rank in dumps.calls] or free or [*first.awaited]
    if first.differs:
        kind, grade, culprits = HangKind.ENTERED_DIFFERENTLY, Grade.ESTABLISHED, [*first.few]
    elif not first.awaited:
        kind, culprits = HangKind.NONE_LEFT, [*first.waiting]
    elif {*cycle} >= {*first.waiting, *first.awaited}:
        kind, culprits = HangKind.CIRCLE, cycle
        open_ = (_first_open(dumps.calls[rank]) for rank in cycle)
        # a message may have been on its way when the dumps were written
        if not any(call is not None and call.messages for call in open_):
            grade = Grade.ESTABLISHED
    elif dumps.calls.keys().isdisjoint(culprits):
        fate = "silent"
    elif all(rank in waits and not waits[rank].peers for rank in culprits):
        grade = Grade.OPEN  # what they stand in has all its members, and may be over in a moment
    held = held_up(waiters(waits), culprits) | {*(first.waiting if first.differs else ())}
    held -= {*culprits}
    return Hang(kind, grade, tuple(culprits), tuple(sorted(held)), fate)


# Dumps of several runs. -----------------------------------------------------------------


def _older(dumps: Dumps) -> list[str]:
    """Return which dumps seem to be of an earlier run than the others.

    What ends on no rank before all have called it is called by none after it has ended on one.
    """
    last: dict[tuple[str, int, str], DumpedCall] = {}
    for made in dumps.calls.values():
        for call in made:
            if call.name in _TOGETHER:
                key = call.group, call.number, call.name
                last[key] = max(last.get(key, call), call, key=lambda one: one.created)
    found = {}
    for rank, made in dumps.calls.items():
        newest = max((call.created for call in made), default=0)
        for call in made:
            later = last.get((call.group, call.number, call.name), call)
            # where it is not noted, most programs have seen one call end before they begin another
            ended = call.ended or (newest if call.is_complete and call.created < newest else 0)
            if ended and later.created > ended + _SKEW:
                found[rank] = (
                    f"{call.name}, call {call.number} of {_named(call.group)}, had ended on rank"
                    f" {rank} {(later.created - ended) / 60e9:,.0f} min before rank"
                    f" {later.rank} called it: is the dump of rank {rank} of an earlier run?"
                )
    return [*found.values()]


# Two dumps of one job. --------------------------------------------------------------

#: By group, and apart for messages: the number of the last call, and whether it has ended.  Torch
#: may note the end of an earlier one late, when its rank has long stood in the last.
_Progress = dict[tuple[str, bool], tuple[int, bool]]


def _progress(calls: Sequence[DumpedCall]) -> _Progress:
    found: _Progress = {}
    for call in calls:
        kind = call.group, bool(call.messages)
        found[kind] = max(found.get(kind, (0, False)), (call.number, call.is_complete))
    return found


def _moved(before: Dumps, dumps: Dumps) -> dict[int, int]:
    """Return the ranks that have gone on since earlier dumps, and how many calls they have begun.

    Raises:
        RequestError: some rank was further on in the earlier dumps, or they are of another job.
    """
    found = {}
    for rank in sorted(before.calls.keys() & dumps.calls.keys()):
        times: dict[tuple[str, int, str], set[int]] = {}  # parts of a batch share a number
        for call in before.calls[rank]:
            times.setdefault((call.group, call.number, call.name), set()).add(call.created)
        for call in dumps.calls[rank]:
            key = call.group, call.number, call.name
            if call.created not in times.get(key, {call.created}):
                raise RequestError(
                    f"the dumps of --before are of another job: there rank {rank} called"
                    f" {call.name}, call {call.number} of {_named(call.group)}, at another time"
                )
        old, new = _progress(before.calls[rank]), _progress(dumps.calls[rank])
        # a buffer may have lost all calls of a group since then
        if any(new[kind] < old[kind] for kind in old.keys() & new.keys()):
            raise RequestError(
                f"rank {rank} was further on in the dumps of --before than in the others: are they"
                " the later ones?"
            )
        if new != old:
            steps = (new[kind][0] - old.get(kind, (0, False))[0] for kind in new)
            found[rank] = sum(steps)
    return found


def _since(dumps: Dumps, before: Dumps, moved: Mapping[int, int]) -> str:
    """Return who has gone on since earlier dumps, and who has not."""
    still = sorted((before.calls.keys() & dumps.calls.keys()) - moved.keys())
    ended = [rank for rank, steps in moved.items() if not steps]
    begun = {rank: steps for rank, steps in moved.items() if steps}
    said = []
    if begun:
        fewest, most = min(begun.values()), max(begun.values())
        steps = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        said.append(
            f"{folded([*begun])} {_have(begun)} gone on, by {steps} call{'s' * (most != 1)}"
        )
    if ended:
        last = "its last call has" if len(ended) == 1 else "their last calls have"
        said.append(f"{folded(ended)} {_have(ended)} begun no call, and {last} ended")
    if still:
        said.append(f"{folded(still)} {_have(still)} not gone on")
    return "; ".join(said)


def _have(ranks: Collection[int]) -> str:
    return "has" if len(ranks) == 1 else "have"


# Collectives. ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Collectives:
    """The collectives of a group that the dumps hold.

    Attributes:
        rows: by number and rank, the calls.
        firsts: by rank, the number of the first of its calls that its buffer still holds.
    """

    rows: dict[int, dict[int, DumpedCall]] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)

    @property
    def begin(self) -> int:
        """The first number that the buffers of all that have called still hold."""
        return max(self.firsts.values(), default=0)

    def lost(self, dumps: Dumps, group: str) -> Set[int]:
        """Return the members whose buffers have lost calls, and hold none of the group any more."""
        return {rank for rank in dumps.cut & {*dumps.groups[group]} if rank not in self.firsts}


def _collectives_by_group(dumps: Dumps) -> dict[str, _Collectives]:
    found = {group: _Collectives() for group in dumps.groups}
    for rank, calls in dumps.calls.items():
        for call in calls:
            if not call.messages:
                held = found[call.group]
                held.rows.setdefault(call.number, {})[rank] = call
                held.firsts[rank] = min(call.number, held.firsts.get(rank, call.number))
    return found


def _divergences(dumps: Dumps, group: str, held: _Collectives) -> Iterator[Divergence]:
    """Yield the first divergence of a group's members, if there is one."""
    begin, lost = held.begin, held.lost(dumps, group)
    name = _named(group)
    for number, row in sorted(held.rows.items()):
        if number < begin:
            continue
        kinds: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        over = all(call.is_complete for call in row.values())
        for rank, call in sorted(row.items()):
            # sizes that differ hold nobody up where the call has ended
            kinds.setdefault((call.name, ()) if over else call_kind(call), []).append(rank)
        where = f"{name}, call {number}"
        if len(kinds) > 1:
            sides = sorted(kinds.values(), key=len)
            parts = [f"{folded(ranks)} {_call_text(row[ranks[0]], ranks)}" for ranks in sides]
            text = f"{where}: {', while '.join(parts)}"
            few = [rank for side in sides for rank in side if len(side) == len(sides[0])]
            yield Divergence(name, text, tuple(row), tuple(row), True, tuple(sorted(few)))
            return
        absent = [rank for rank in dumps.groups[group] if rank not in row and rank not in lost]
        open_ = [rank for rank, call in sorted(row.items()) if not call.is_complete]
        if not open_:
            continue
        call = row[open_[0]]
        if absent:
            verb = "wait" if len(open_) > 1 else "waits"
            text = f"{where}: {folded(open_)} {verb} in {call.name}{_at(call)}"
            silent = [rank for rank in absent if rank in dumps.calls]
            if silent:
                lasts = [_last_call(dumps, group, rank) for rank in silent[:4]]
                verb = "have" if len(silent) > 1 else "has"
                text += f"; {folded(silent)} {verb} not called it: {'; '.join(lasts)}"
            if len(silent) < len(absent):
                unheard = folded([rank for rank in absent if rank not in dumps.calls])
                text += (
                    f"; {unheard} left no dump that can be read: a rank that is killed leaves none"
                )
            yield Divergence(name, text, tuple(open_), tuple(absent))
            return
        # what comes after it in the group is queued behind it
        if group in dumps.described and len(open_) == len(dumps.groups[group]):
            yield Divergence(name, f"{where}: {_unended(call, row)}", tuple(open_))
            return


def call_kind(call: DumpedCall) -> tuple[str, tuple[int, ...]]:
    """Return what the members of a group have to agree on: the collective, and its sizes."""
    return call.name, () if call.name in _UNEVEN else call.elements


def _unended(call: DumpedCall, row: Mapping[int, DumpedCall]) -> str:
    """Return what is said of a call that all members have made, and that has ended on none."""
    started = [rank for rank, one in sorted(row.items()) if one.is_started]
    others = [rank for rank in sorted(row) if rank not in started]
    text = f"all members have called {call.name}{_at(call)}, and it has ended on none"
    if started and others:
        return (
            f"{text}; it has started on {folded(started)} and not on {folded(others)}, where the"
            " device has yet to come to it"
        )
    return (
        f"{text}: a device or the network holds it up, or what is not recorded, such as the root"
        " and the operation"
    )


def _at(call: DumpedCall) -> str:
    return f" at {call.site}" if call.site else ""


def _call_text(call: DumpedCall, ranks: Sequence[int]) -> str:
    return f"{'call' if len(ranks) > 1 else 'calls'} {call.name} of {call.sizes}{_at(call)}"


def _last_call(dumps: Dumps, group: str, rank: int) -> str:
    """Return what a rank called last in a group."""
    made = [call for call in dumps.calls[rank] if call.group == group and not call.messages]
    if not made:
        return f"rank {rank} has called no collective of this group"
    call = made[-1]
    state = "which is complete" if call.is_complete else "which is not complete"
    return f"the last call of rank {rank} was number {call.number}, {call.name}{_at(call)}, {state}"


# Messages. ------------------------------------------------------------------------

#: By group, source and destination: the calls with the sends, and those with the receives.
_Ends = Mapping[tuple[str, int, int], Mapping[str, Sequence[DumpedCall]]]


def _peers(dumps: Dumps, call: DumpedCall) -> list[tuple[str, int]]:
    """Return the messages of a call, each with the global rank at its other end."""
    members = dumps.groups[call.group]
    return [(kind, members[place]) for kind, place in call.messages if place < len(members)]


def _channel(call: DumpedCall, kind: str, peer: int) -> tuple[str, int, int]:
    return (call.group, *((call.rank, peer) if kind == "send" else (peer, call.rank)))


def _ends(dumps: Dumps) -> _Ends:
    """Return both ends of all messages whose channels can be counted.

    They cannot where a dump is not there, or where a buffer has lost calls.
    """
    ends: dict[tuple[str, int, int], dict[str, list[DumpedCall]]] = {}
    countable = dumps.calls.keys() - dumps.cut
    for rank in sorted(countable):
        for call in dumps.calls[rank]:
            for kind, peer in _peers(dumps, call):
                if peer in countable:
                    both = ends.setdefault(_channel(call, kind, peer), {"send": [], "recv": []})
                    both[kind].append(call)
    return ends


def _messages(dumps: Dumps, ends: _Ends) -> Iterator[Divergence]:
    """Yield, for each pair of ranks, the first message that is open and has one end alone."""
    for (group, source, target), both in ends.items():
        sends, receives = both["send"], both["recv"]
        more, fewer = max(sends, receives, key=len), min(sends, receives, key=len)
        if len(more) == len(fewer) or more[len(fewer)].is_complete:
            continue
        at = _at(more[len(fewer)])
        if more is sends:
            text = f"rank {source} sends to rank {target}{at}, and rank {target} receives nothing"
        else:
            text = f"rank {target} receives from rank {source}{at}, and rank {source} sends nothing"
        own, other = (source, target) if more is sends else (target, source)
        text = f"{_named(group)}: {text} for it"
        yield Divergence(_named(group), text, (own,), (other,))


def _unheard(dumps: Dumps, waits: Mapping[int, Wait], awaited: Set[int]) -> Iterator[Divergence]:
    """Yield waits for messages of ranks that left no dump, and of which nothing is said yet."""
    for rank, wait in waits.items():
        peers = tuple(one for one in wait.peers if one not in dumps.calls and one not in awaited)
        if peers:
            text = f"rank {rank} {wait.text}; {folded(peers)} left no dump that can be read"
            yield Divergence("messages", text, (rank,), peers)


# Who waits for whom. --------------------------------------------------------------


def _waits(dumps: Dumps, held: Mapping[str, _Collectives], ends: _Ends) -> Iterator[Wait]:
    """Yield the wait of each rank with a call that has not ended: its first, and whom it needs."""
    lost = {group: held[group].lost(dumps, group) for group in dumps.groups}
    # who waits in the same call waits for the same ranks
    awaited: dict[tuple[str, int, str], tuple[int, ...]] = {}
    for rank, calls in sorted(dumps.calls.items()):
        call = _first_open(calls)
        if call is None:
            continue
        if call.messages:
            peers = tuple(sorted({*_without_other_end(dumps, ends, call)}))
        elif (call.group, call.number, call.name) in awaited:
            peers = awaited[call.group, call.number, call.name]
        else:
            row, firsts = held[call.group].rows[call.number], held[call.group].firsts
            peers = awaited[call.group, call.number, call.name] = tuple(
                one
                for one in dumps.groups[call.group]
                if (one not in row or row[one].name != call.name)
                # nobody knows, or it is past this call
                and not (one in lost[call.group] or firsts.get(one, 0) > call.number)
            )
        towards = f" for {folded(peers)}" if peers else ""
        of = f" of {call.group}" if call.group != DEFAULT_GROUP else ""
        text = f"waits in {call.name}{of}{_at(call)}{towards}"
        yield Wait(rank, peers, text, call.site, call.name)


def _first_open(calls: Sequence[DumpedCall]) -> DumpedCall | None:
    """Return the call that a rank waits in: the first that has not ended."""
    return next((call for call in calls if not call.is_complete), None)


def _without_other_end(dumps: Dumps, ends: _Ends, call: DumpedCall) -> Iterator[int]:
    """Yield the ranks that have not posted the other ends of a call's messages."""
    for kind, peer in _peers(dumps, call):
        both = ends.get(_channel(call, kind, peer))
        if both is None:
            if peer not in dumps.calls:
                yield peer
            continue
        mine, theirs = both[kind], both["recv" if kind == "send" else "send"]
        last = max(place for place, one in enumerate(mine) if one is call)
        if last >= len(theirs):
            yield peer


def _gaps(dumps: Dumps, held: Mapping[str, _Collectives], awaited: Set[int]) -> Iterator[str]:
    """Yield what the dumps do not say; of the ranks that are waited for it has been said."""
    yield from dumps.unread
    missing = [rank for rank in dumps.missing if rank not in awaited]
    if missing:
        yield f"there is no dump of {folded(missing)} that can be read: what it called is not known"
    if any(call.messages for rank in dumps.cut for call in dumps.calls[rank]):
        yield "some messages are no longer in the buffers, so that they cannot be counted"
    if not dumps.has_messages:
        yield "gloo's recorder notes no messages, so that a hang in send or recv is not seen here"
    calls = [call for made in dumps.calls.values() for call in made]
    if not calls:
        yield (
            "the dumps hold no calls: nothing was called before they were written, or the recorder"
            " is off (TORCH_FR_BUFFER_SIZE=2000, set before the job starts, turns it on)"
        )
    elif not any(call.site for call in calls):
        yield "the dumps name no lines of the program"
    unknown = [group for group in dumps.groups if group not in dumps.described]
    if unknown:
        yield (
            f"no dump describes {', '.join(unknown[:_SHOWN])}: of its members those are known that"
            " have called something in it, and none that never did is missed"
        )
    for group, calls_held in held.items():
        begin, lost = calls_held.begin, sorted(calls_held.lost(dumps, group))
        if lost and calls_held.rows:
            yield (
                f"{_named(group)}: the buffer of {folded(lost)} holds no call of it any more, so"
                " that nobody knows what was called; TORCH_FR_BUFFER_SIZE makes it larger"
            )
        if begin > 1:
            yield (
                f"{_named(group)}: calls before number {begin} are no longer in some rank's buffer,"
                " and the comparison starts there; TORCH_FR_BUFFER_SIZE makes it larger"
            )


def _named(group: str) -> str:
    return "the default group" if group == DEFAULT_GROUP else group


def _waits_anywhere(dumps: Dumps) -> bool:
    return any(not call.is_complete for calls in dumps.calls.values() for call in calls)


# Reports. -------------------------------------------------------------------------


def explanation_text(found: Explanation, dumps: Dumps, width: int) -> str:
    """Return what was found in lines of at most ``width`` characters."""
    count = len(dumps.calls)
    calls = sum(map(len, dumps.calls.values()))
    of = f"{count} dump{'s' * (count != 1)} with {calls:,} call{'s' * (calls != 1)}"
    if not found.faults and not calls:
        lines = [("", f"? {of}: there is nothing to compare")]
    elif not found.faults and found.since and not found.waits and _waits_anywhere(dumps):
        lines = [("", f"? {of}: the job goes on, or went on until a moment ago")]
    elif not found.faults and (found.waits or dumps.missing):
        why = "yet ranks wait" if found.waits else "and not all dumps are there"
        lines = [("", f"? {of}: nothing differs in what they hold, {why}")]
    elif found.hang is None:
        lines = [("", f"✓ {of}: the ranks agree")]
    else:
        causes, others = found.faults[: found.causes], found.faults[found.causes :]
        mark = "✗" if found.is_fault else "?"
        lines = [("", f"{mark} {found.hang.label}: {found.hang} ({of})")]
        lines.append(("  where", causes[0].text))
        lines += [("  also", fault.text) for fault in causes[1:_SHOWN]]
        if len(causes) > _SHOWN:
            lines.append(("  also", f"… and {len(causes) - _SHOWN} more, as --json lists"))
        if others:
            names = list(dict.fromkeys(fault.group for fault in others))
            more = f"; … of {len(names)}" * (len(names) > _SHOWN)
            lines.append(("  behind", f"{'; '.join(names[:_SHOWN])}{more}"))
    # who has made different calls waits for each other anyhow
    told = [{*fault.waiting} for fault in found.faults if fault.differs]
    is_said = any({*found.cycle} <= ranks for ranks in told)
    if found.cycle and not is_said and found.hang and found.hang.kind is not HangKind.CIRCLE:
        way = " → ".join(map(str, (*found.cycle, found.cycle[0])))
        lines.append(("  circle", f"{way}, each waits for the next"))
    lines += wait_lines(found.waits)
    lines += [("  since", f"the earlier dumps: {found.since}")] * bool(found.since)
    lines += [("  note", gap) for gap in found.gaps]
    return wrapped(lines, width)


def explanation_json(found: Explanation) -> str:
    """Return the same as one JSON object, in one line."""
    return json.dumps(
        {
            "version": 1,
            "ok": not found.is_fault,
            "faults": [fault.text for fault in found.faults],
            "causes": found.causes,
            "hang": found.hang and asdict(found.hang),
            "waits": [wait_object(wait) for wait in found.waits],
            "cycle": list(found.cycle),
            "gaps": list(found.gaps),
            "since": found.since,
        }
    )
