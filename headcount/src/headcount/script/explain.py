"""Why a job has stopped, from the dumps of PyTorch's flight recorder: ``headcount explain``.

In every group, the calls of its members are laid side by side by their numbers.  The first number
at which they differ, or at which some members wait and others have called nothing, is where the job
went wrong; all that follows is a consequence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headcount.core.verdict import Wait, ranks_text
from headcount.script.report import wait_object, wrapped
from headcount.trace.deadlock import cycle_of
from headcount.trace.flight_recorder import DumpedCall, Dumps

__all__ = ["Explanation", "explain", "explanation_json", "explanation_text"]

#: Collectives of which the members give tensors of different sizes, each its own.
_UNEVEN = frozenset({"scatter", "gather", "all_to_all", "all_to_all_single", "reduce_scatter_v"})


#: Ranks whose waits are shown.
_SHOWN = 8


@dataclass(frozen=True)
class Explanation:
    """What the dumps say.

    Attributes:
        faults: what is wrong, one sentence each, the first divergence of a group first.
        waits: by rank, what it waited for when its dump was written.
        cycle: ranks that wait for each other, in a circle.
        gaps: what the dumps do not say, and what would make them say it.
    """

    faults: tuple[str, ...]
    waits: tuple[Wait, ...]
    cycle: tuple[int, ...]
    gaps: tuple[str, ...]


def explain(dumps: Dumps) -> Explanation:
    """Find where the members of each group part, and who waits for whom."""
    faults = [fault for group in dumps.groups for fault in _collectives(dumps, group)]
    faults += _messages(dumps)
    waits = {wait.rank: wait for wait in _waits(dumps)}
    return Explanation(
        tuple(faults), tuple(waits.values()), tuple(cycle_of(waits)), tuple(_gaps(dumps))
    )


# Collectives. ---------------------------------------------------------------------


def _rows(dumps: Dumps, group: str) -> dict[int, dict[int, DumpedCall]]:
    """Return the collectives of a group, by number and rank."""
    rows: dict[int, dict[int, DumpedCall]] = {}
    for rank, calls in dumps.calls.items():
        for call in calls:
            if call.group == group and call.peer is None:
                rows.setdefault(call.number, {})[rank] = call
    return dict(sorted(rows.items()))


def _kept(dumps: Dumps, group: str, rows: Mapping[int, Mapping[int, DumpedCall]]) -> int:
    """Return the first number that the buffers of all members still hold."""
    firsts = [
        min((number for number, row in rows.items() if rank in row), default=0)
        for rank in dumps.groups[group]
        if rank in dumps.calls
    ]
    return max(firsts, default=0)


def _collectives(dumps: Dumps, group: str) -> Iterator[str]:
    """Yield the first divergence of a group's members, if there is one."""
    rows = _rows(dumps, group)
    begin = _kept(dumps, group, rows)
    members = [rank for rank in dumps.groups[group] if rank in dumps.calls]
    for number, row in rows.items():
        if number < begin:
            continue
        kinds: dict[tuple[str, str], list[int]] = {}
        for rank, call in sorted(row.items()):
            sizes = "" if call.name in _UNEVEN else call.sizes
            kinds.setdefault((call.name, sizes), []).append(rank)
        where = f"{_named(group)}, call {number}"
        if len(kinds) > 1:
            parts = [
                f"{ranks_text(ranks)} {_call_text(row[ranks[0]], ranks)}"
                for ranks in kinds.values()
            ]
            yield f"{where}: {', while '.join(parts)}"
            return
        absent = [rank for rank in members if rank not in row]
        open_ = [rank for rank, call in sorted(row.items()) if not call.is_complete]
        if absent and open_:
            call = row[open_[0]]
            at = f" at {call.site}" if call.site else ""
            verb = "wait" if len(open_) > 1 else "waits"
            lasts = [_last_call(rows, rank, rank in dumps.cut) for rank in absent[:4]]
            yield (
                f"{where}: {ranks_text(open_)} {verb} in {call.name}{at}; {ranks_text(absent)}"
                f" {'have' if len(absent) > 1 else 'has'} not called it: {'; '.join(lasts)}"
            )
            return
        is_last = number == max(rows)
        if is_last and open_ and sorted(open_) == sorted(dumps.groups[group]):
            call = row[open_[0]]
            at = f" at {call.site}" if call.site else ""
            yield (
                f"{where}: all members have called {call.name}{at}, and it has ended on none: the"
                " fault is below the program, in the network or a rank that computes too long"
            )
            return


def _call_text(call: DumpedCall, ranks: Sequence[int]) -> str:
    at = f" at {call.site}" if call.site else ""
    return f"{'call' if len(ranks) > 1 else 'calls'} {call.name} of {call.sizes}{at}"


def _last_call(rows: Mapping[int, Mapping[int, DumpedCall]], rank: int, cut: bool) -> str:
    """Return what a rank called last in a group; ``cut`` if its buffer has lost calls."""
    made = [row[rank] for row in rows.values() if rank in row]
    if not made and cut:
        return f"the buffer of rank {rank} holds no call in this group any more"
    if not made:
        return f"rank {rank} has called nothing in this group"
    call = made[-1]
    at = f" at {call.site}" if call.site else ""
    state = "which is complete" if call.is_complete else "which is not complete"
    return f"the last call of rank {rank} was number {call.number}, {call.name}{at}, {state}"


# Messages. ------------------------------------------------------------------------


def _messages(dumps: Dumps) -> Iterator[str]:
    """Yield, for each pair of ranks, the first message with one end alone."""
    ends: dict[tuple[str, int, int], dict[str, list[DumpedCall]]] = {}
    for rank, calls in dumps.calls.items():
        for call in calls:
            if call.peer is None:
                continue
            members = dumps.groups[call.group]
            if rank not in members or not 0 <= call.peer < len(members):
                continue
            peer = members[call.peer]
            source, target = (rank, peer) if call.name == "send" else (peer, rank)
            ends.setdefault((call.group, source, target), {}).setdefault(call.name, []).append(call)
    for (group, source, target), both in ends.items():
        sends, receives = both.get("send", []), both.get("recv", [])
        # where a buffer has lost calls, or a dump is not there, the ends cannot be counted
        if {source, target} & dumps.cut or not {source, target} <= dumps.calls.keys():
            continue
        if len(sends) == len(receives):
            continue
        more, fewer = max(sends, receives, key=len), min(sends, receives, key=len)
        call = more[len(fewer)]
        at = f" at {call.site}" if call.site else ""
        if more is sends:
            did, missing = f"rank {source} sends to rank {target}{at}", f"rank {target} receives"
        else:
            did, missing = f"rank {target} receives from rank {source}{at}", f"rank {source} sends"
        yield f"{_named(group)}: {did}, for which {missing} nothing"


# Who waits for whom. --------------------------------------------------------------


def _waits(dumps: Dumps) -> Iterator[Wait]:
    """Yield the first call of each rank that has not ended, with the ranks it needs."""
    rows = {group: _rows(dumps, group) for group in dumps.groups}
    for rank, calls in sorted(dumps.calls.items()):
        call = _open(calls)
        if call is None:
            continue
        members = dumps.groups[call.group]
        if call.peer is not None:
            peers = [members[call.peer]] if 0 <= call.peer < len(members) else []
            peers = [
                peer
                for peer in peers
                if not _is_counterpart(call, _open(dumps.calls.get(peer, ())))
            ]
        else:
            row = rows[call.group][call.number]
            peers = [one for one in members if one not in row or row[one].name != call.name]
        at = f" at {call.site}" if call.site else ""
        towards = f" for {ranks_text(peers)}" if peers else ""
        yield Wait(rank, tuple(peers), f"waits in {call.name}{at}{towards}", call.site, call.name)


def _open(calls: Sequence[DumpedCall]) -> DumpedCall | None:
    """Return the call of a rank that had not ended."""
    open_ = [call for call in calls if not call.is_complete]
    if not open_:
        return None
    # gloo's dumps say of no call that it is complete
    return open_[0] if len(open_) < len(calls) else open_[-1]


def _is_counterpart(call: DumpedCall, other: DumpedCall | None) -> bool:
    """Return whether two open calls are the ends of one message, which is on its way."""
    return other is not None and (call.group, {call.name, other.name}) == (
        other.group,
        {"send", "recv"},
    )


def _gaps(dumps: Dumps) -> Iterator[str]:
    """Yield what the dumps do not say."""
    if dumps.missing:
        yield (
            f"there is no dump of {ranks_text(dumps.missing)}: a rank that is killed writes none,"
            " and what it called last is not known"
        )
    calls = [call for made in dumps.calls.values() for call in made]
    if not calls:
        yield "the dumps hold no calls: set TORCH_FR_BUFFER_SIZE=2000 before the job starts"
    elif not any(call.site for call in calls):
        yield "the dumps name no lines of the program"
    for group in dumps.groups:
        rows = _rows(dumps, group)
        begin = _kept(dumps, group, rows)
        if begin > 1 and rows:
            yield (
                f"{_named(group)}: calls before number {begin} are no longer in some rank's buffer;"
                " TORCH_FR_BUFFER_SIZE makes it larger"
            )


def _named(group: str) -> str:
    return "the default group" if group == "default_pg" else group


# Reports. -------------------------------------------------------------------------


def explanation_text(found: Explanation, dumps: Dumps, width: int) -> str:
    """Return what was found in lines of at most ``width`` characters."""
    count = len(dumps.calls)
    calls = sum(map(len, dumps.calls.values()))
    of = f"{count} dump{'' if count == 1 else 's'} with {calls:,} calls"
    lines = [
        ("", f"✗ {of}: {found.faults[0]}" if found.faults else f"✓ {of}: the ranks' calls agree")
    ]
    lines += [("  also", fault) for fault in found.faults[1:]]
    if found.cycle:
        lines.append(("  circle", f"{ranks_text(found.cycle)} wait for each other"))
    lines += [(f"  rank {wait.rank}", wait.text) for wait in found.waits[:_SHOWN]]
    if len(found.waits) > _SHOWN:
        lines.append(("", f"  … and {len(found.waits) - _SHOWN} more ranks that wait"))
    lines += [("  note", gap) for gap in found.gaps]
    return wrapped(lines, width)


def explanation_json(found: Explanation) -> str:
    """Return the same as one JSON object, in one line."""
    return json.dumps(
        {
            "version": 1,
            "ok": not found.faults,
            "faults": list(found.faults),
            "waits": [wait_object(wait) for wait in found.waits],
            "cycle": list(found.cycle),
            "gaps": list(found.gaps),
        }
    )
