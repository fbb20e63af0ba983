"""Which ranks of a job wait, and for whom: what held in both readings of it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headcount.core.verdict import Wait, folded
from headcount.script.attach.readings import JobReadings, RankReading, StackFrame
from headcount.script.attach.stacks import in_default_group, own_frame, torch_call, value_of
from headcount.script.explain import explain
from headcount.trace.flight_recorder import (
    DEFAULT_GROUP,
    DumpedCall,
    Dumps,
    gloo_dumps,
    is_library,
)

__all__ = ["MESSAGES", "JobWaits", "waits_of"]

#: The calls that end with a message, and the variable that names the rank at the other end.
MESSAGES = {"recv": "src", "send": "dst"}

#: The collectives that gloo's recorder leaves out.
_UNRECORDED = ("monitored_barrier",)


@dataclass
class JobWaits:
    """Who waits for whom.

    Attributes:
        waits: by rank, what it waits in, and for whom.
        calls: of ranks that wait in a collective that is recorded, the call.
        rows: by group and number, the calls of all ranks.
        by_stack: the ranks of which a stack alone says that they wait, and no record; whether it
            is in the default group, where that is known.
        stopped: the ranks that are stopped.
        stands_in: by torch's call, the ranks whose stacks stand in it; by None, those in no call.
        may_make: the ranks that made a group at one of the readings, as far as it is known.
        absent: by a group's name and members, who has not come to its making as the store has it,
            and who of them stands elsewhere.
    """

    dumps: Dumps
    waits: dict[int, Wait] = field(default_factory=dict)
    calls: dict[int, DumpedCall] = field(default_factory=dict)
    rows: dict[tuple[str, int], dict[int, DumpedCall]] = field(default_factory=dict)
    by_stack: dict[int, bool] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)
    stands_in: dict[str | None, list[int]] = field(default_factory=dict)
    may_make: set[int] = field(default_factory=set)
    absent: dict[tuple[str, tuple[int, ...]], tuple[list[int], list[int]]] = field(
        default_factory=dict
    )


def waits_of(readings: JobReadings) -> JobWaits:
    """Find who waits for whom; a wait counts if it is the same one in both readings."""
    members: dict[str, Sequence[int]] = {"0": range(readings.world)}
    for group, places in readings.members.items():
        ranks = [places.get(place) for place in range(len(places))]
        known = [rank for rank in ranks if rank is not None]
        if group != "0" and len({*known}) == len(ranks):
            members[group] = known
    held = {rank: one.calls for rank, one in readings.last.items() if one.calls is not None}
    found = JobWaits(gloo_dumps(held, members))
    for rank, made in found.dumps.calls.items():
        for one in made:
            found.rows.setdefault((one.group, one.number), {})[rank] = one
    found.stopped = [rank for rank, reading in readings.last.items() if reading.is_stopped]
    for rank, *both in readings.pairs():
        for reading in both:
            name = getattr(torch_call(reading.frames), "name", None)
            if (name or "").endswith("_group") or _is_unseen(reading):
                found.may_make.add(rank)
        if both[1].frames:
            found.stands_in.setdefault(name, []).append(rank)
    recorded = {wait.rank: wait for wait in explain(found.dumps).waits}
    for rank, before, after in readings.pairs():
        if before.pid != after.pid or readings.is_gone(rank) or after.is_stopped:
            continue
        wait = (
            _lock(readings, rank)
            or _making_of_group(readings, found, rank)
            or _message(before, after, rank)
            or _collective(readings, found, recorded.get(rank), rank)
            or _by_stack(readings, found, rank)
        )
        if wait is not None:
            found.waits[rank] = wait
    return found


def _wait(rank: int, peers: Sequence[int], what: str, call: str) -> Wait:
    text = f"{what} for {folded(peers)}" if peers else what.rstrip(",")
    return Wait(rank, tuple(peers), f"waits in {text}", None, call)


def _same_call(before: RankReading, after: RankReading) -> StackFrame | None:
    """Return torch's call that a rank is in at both times, from the same line."""
    now, then = torch_call(after.frames), torch_call(before.frames)
    if now is None or then is None or now.name != then.name:
        return None
    return now if own_frame(before.frames) == own_frame(after.frames) else None


def _lock(readings: JobReadings, rank: int) -> Wait | None:
    before, after = readings.first[rank].lock, readings.last[rank].lock
    if after is None or before != after:
        return None
    holders = [
        one
        for one, reading in readings.last.items()
        if after.holder in (reading.pid, *(worker.pid for worker in reading.workers))
    ]
    text = f"waits for the lock of {after.path}, which {folded(holders)} holds"
    return Wait(rank, tuple(holders), text, None, "lock") if holders else None


def _making_of_group(readings: JobReadings, found: JobWaits, rank: int) -> Wait | None:
    """Return the wait of a rank that makes a group with others."""
    before, after = readings.first[rank], readings.last[rank]
    call = _same_call(before, after)
    arrived = rank in readings.members.get("0", {}) and not after.calls
    if call is not None and call.name in ("init_process_group", "new_group"):
        made = call.name
    elif after.frames is None and arrived:
        made = "init_process_group"  # the store alone says so
    else:
        return None
    is_default, helper = made == "init_process_group", "_new_process_group_helper"
    name = "0" if is_default else str(value_of(after.frames, helper, "group_name"))
    ranks = value_of(after.frames, helper, "global_ranks_in_group")
    members = tuple(ranks if isinstance(ranks, list) and ranks else range(readings.world))
    if (name, members) not in found.absent:
        seen = {*readings.members.get(name, {}), *readings.arrived.get(name, {})}
        absent = [one for place, one in enumerate(members) if place not in seen]
        elsewhere = [one for one in absent if not _makes_group(readings, found, one, is_default)]
        found.absent[name, members] = absent, elsewhere
    missing, elsewhere = found.absent[name, members]
    if rank in missing:  # the store is not known, or cannot be read
        missing = elsewhere
    if after.frames is None and not missing:
        return None
    return _wait(rank, missing, made, made)


def _makes_group(readings: JobReadings, found: JobWaits, rank: int, is_default: bool) -> bool:
    """Return whether a rank is at the making of a group, may be, or has come past it."""
    if rank not in readings.last:
        return not readings.is_whole
    return rank in found.may_make or bool(is_default and readings.last[rank].calls)


def _is_unseen(reading: RankReading) -> bool:
    return reading.frames is None and not reading.has_ended


def _message(before: RankReading, after: RankReading, rank: int) -> Wait | None:
    """Return the wait for a message, which nothing records: its rank has not moved at all."""
    call = _same_call(before, after)
    if call is None or call.name not in MESSAGES or before.switches != after.switches:
        return None
    peer = value_of(after.frames, call.name, MESSAGES[call.name])
    return _wait(rank, [peer] if isinstance(peer, int) else [], call.name, call.name)


def _collective(
    readings: JobReadings, found: JobWaits, wait: Wait | None, rank: int
) -> Wait | None:
    """Return the wait in a collective that is open, if the rank does nothing else meanwhile."""
    before, after = readings.first[rank], readings.last[rank]
    pending = next((call for call in after.calls or () if not call.retired), None)
    was = {call.record_id for call in before.calls or () if not call.retired}
    if wait is None or pending is None or pending.record_id not in was:
        return None
    if not (_may_wait(before) and _may_wait(after)):
        return None
    call = next(call for call in found.dumps.calls[rank] if not call.is_complete)
    found.calls[rank] = call
    members = found.dumps.groups[call.group]
    # of a rank that could not be read nobody knows whether it has called
    peers = [one for one in wait.peers if one in found.dumps.calls or readings.is_gone(one)] or [
        one for one in found.stopped if one in members
    ]
    group = "the default group" if call.group == DEFAULT_GROUP else call.group
    sizes = f" of {call.sizes}" if call.sizes not in ("", "[]") else ""
    roots = (value_of(after.frames, call.name, f"group_{end}") for end in ("src", "dst"))
    sizes += "".join(f", root {root}" for root in roots if isinstance(root, int))
    return _wait(rank, peers, f"{call.name}{sizes}, call {call.number} of {group},", call.name)


def _may_wait(reading: RankReading) -> bool:
    """Return whether a rank may be waiting for its collective: its main thread does nothing else.

    Gloo waits on a futex, as locks of Python do; a call may be in flight while the rank does
    something else.
    """
    if reading.runs:
        return False
    if reading.sleeps_in and not reading.sleeps_in.startswith("futex"):
        return False
    if not reading.frames or torch_call(reading.frames):
        return True
    inner = reading.frames[0]
    return not is_library(inner.file) or "/torch/" in inner.file


def _by_stack(readings: JobReadings, found: JobWaits, rank: int) -> Wait | None:
    """Return the wait of a rank without a record, as far as stacks tell."""
    before, after = readings.first[rank], readings.last[rank]
    call = _same_call(before, after)
    if call is None or before.switches != after.switches:
        return None
    if after.calls is not None and call.name not in _UNRECORDED:
        return None
    is_only = [*readings.members] == ["0"]
    found.by_stack[rank] = is_default = is_only or in_default_group(after.frames, call.name)
    if not is_default:  # which group it is no stack says
        return _wait(rank, [], f"{call.name} of some group, as its stack says", call.name)
    peers = {one for name, ranks in found.stands_in.items() if name != call.name for one in ranks}
    return _wait(
        rank, sorted(peers.union(found.stopped)), f"{call.name}, as its stack says,", call.name
    )
