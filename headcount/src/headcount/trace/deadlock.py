"""The wait-for graph of ranks, and the ranks that can never go on.

A rank is a set of threads.  A thread that waits for an operation can go on if the
counterpart is posted, or if a live rank can still post it: one of several where a
wildcard receive would take any message, all of them where a collective needs every member.
A thread that waits for an entry of the store goes on if the entry is there, or if another rank is
live.  A thread that runs, sleeps, or waits with a time limit can go on by itself.  One that
waits for other threads of its rank (a lock, a queue, ``join``) goes on only if another
thread does.  So a rank is *live* if any of its threads can go on, and the live ranks are
the least set closed under these rules.  Everyone else has reached a deadlock: the
counterparts that they need can only be posted by ranks that have returned.

The ranks report what they wait for as they begin to.  What their other threads do is
asked when it matters: a deadlock is certain when every rank of it has been asked, and has
said nothing since.  If each thread of those ranks was waiting when its rank was asked, and
none has been given what it waits for, none can have gone on: the first one to do so would
have needed something from another of them.

This is the AND-OR graph of Hilbrich et al., *MPI Runtime Error Detection with
MUST: Advances in Deadlock Detection* (2012), section 3, evaluated on every
post instead of after a timeout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from headcount.core.events import Inspected
from headcount.core.verdict import (
    Diagnosis,
    Failure,
    Grade,
    Hang,
    HangKind,
    Site,
    Wait,
    ranks_text,
)
from headcount.trace.trace import Operation
from headcount.trace.wait_state import Awaited, WaitState

__all__ = [
    "cycle_of",
    "deadlock",
    "given_up",
    "held_up",
    "never_joined",
    "polled_wait",
    "quiescent",
    "stuck",
    "told",
    "told_together",
    "waiters",
    "wait_of",
    "wait_text",
    "waiting",
]


class _Entry(NamedTuple):
    """A key of the store that a thread waits for; any other rank may give it a value."""

    rank: int
    key: str


#: Of each rank what must be complete before it goes on: all of one of the lists.
_Needs = dict[int, list[list[Operation | _Entry]]]

#: How many of the things that ranks wait for a message tells; the rest stands below it.
_SHOWN = 4

#: By what a rank waits in, what another one would have to do for it; of a collective, call it.
_NEVER = {"send": "receive", "recv": "send", "store": "set it"}
_CALL = "call it"

#: A detail of a deadlock that buffers would dissolve.
_BUFFERS = (
    "this can only work where sends are buffered, as MPI may do with small messages; with gloo, or"
    " with large messages, it hangs"
)


def quiescent(state: WaitState) -> bool:
    """Return whether nothing more can happen until a wildcard is given a message."""
    return all(
        rank in state.ended or _polls_in_vain(state, rank) or _pauses(state, rank)
        for rank in range(state.size)
    )


def _polls_in_vain(state: WaitState, rank: int) -> bool:
    """Return whether a rank asks about operations, none of which will complete by itself."""
    operations = state.operations[rank]
    polled = state.polling.get(rank, ())
    return bool(polled) and not any(_completes_alone(operations[op]) for op in polled)


def _pauses(state: WaitState, rank: int) -> bool:
    """Return whether all known threads of a rank wait for something that has not happened."""
    held, seen = state.waits[rank], state.inspected[rank]
    if any(_completes_alone(awaited.op) for awaited in held.values()):
        return False
    if seen is not None and any(
        all(key in state.stored for key in keys) for _, keys, _, _ in seen.store
    ):
        return False
    return bool(held) or (seen is not None and not seen.acting)


def _completes_alone(op: Operation) -> bool:
    """Return whether the transport will complete the operation by itself, or has done so."""
    if op.done is not None:
        return True
    lost = op.failed or op.doomed or (op.partner is not None and op.partner.failed)
    return op.matched and not lost


def stuck(state: WaitState, *, certain: bool = False) -> list[int]:
    """Return the ranks that wait and can never go on, in rank order.

    Args:
        state: what the ranks have reported.
        certain: leave out ranks that have not reported what their other threads do.
    """
    if certain and not any(state.inspected):
        return []  # as in most looks, of which there is one after every message
    needs = {
        rank: needed
        for rank in range(state.size)
        if rank not in state.ended
        and (needed := _awaited_by_thread(state, rank, certain)) is not None
    }
    return sorted(needs.keys() - _live(state, needs)) if needs else []


def _live(state: WaitState, needs: _Needs, buffered: bool = False) -> set[int]:
    """Return the ranks that can go on: the least set closed under the rules above.

    Args:
        state: what the ranks have reported.
        needs: by rank, what those that cannot go on by themselves wait for.
        buffered: suppose that no send waits for its receive.
    """
    live = set(range(state.size)) - needs.keys() - state.ended

    def completes(op: Operation | _Entry) -> bool:
        if isinstance(op, _Entry):
            return op.key in state.stored or bool(live - {op.rank})
        return _completes_alone(op) or (buffered and op.kind == "send") or _freed(state, op, live)

    # a rank is looked at again when one that it waits for turns out to be live
    waiters = defaultdict(list)
    for rank, needed in needs.items():
        for op in chain.from_iterable(needed):
            for peer in _freeing(state, op):
                waiters[peer].append(rank)
    to_look_at = list(needs)
    while to_look_at:
        rank = to_look_at.pop()
        if rank not in live and any(all(map(completes, ops)) for ops in needs[rank]):
            live.add(rank)
            to_look_at += waiters[rank]
    return live


def _freeing(state: WaitState, op: Operation | _Entry) -> Iterable[int]:
    """Return the ranks that may free a thread that waits for ``op``."""
    if isinstance(op, _Entry) or (op.is_message and op.deferred):
        return range(state.size)
    return _peers(state, op)


def _awaited_by_thread(
    state: WaitState, rank: int, certain: bool
) -> list[list[Operation | _Entry]] | None:
    """Return, for each thread of a rank, the operations that must complete before it goes on.

    ``None`` means that the rank can go on by itself.
    """
    held, seen = state.waits[rank], state.inspected[rank]
    if any(awaited.limit for awaited in held.values()):
        return None
    # giving up a message closes the connections of its group, so that the next wait there ends
    # with an exception, whose event may still be on its way
    # a connection to a rank that was killed breaks, too; but of a collective that needs one, only
    # its neighbours in the algorithm would hear, and the others wait forever
    if any(one.op.is_message and one.op.peer in state.killed for one in held.values()):
        return None
    broken = state.broken[rank]
    if broken and any(one.op.is_message and one.op.group in broken for one in held.values()):
        return None
    needed: list[list[Operation | _Entry]] = [[awaited.op] for awaited in held.values()]
    if seen is None:
        return None if certain or not held else needed
    if seen.acting:
        return None
    operations = state.operations[rank]
    needed += [[operations[op] for op in ops] for ops in seen.callbacks]
    needed += [[_Entry(rank, key) for key in keys] for _, keys, _, _ in seen.store]
    return needed


def waiting(state: WaitState) -> set[int]:
    """Return the ranks whose known threads all wait for something that has not happened."""
    found = set()
    for rank in range(state.size):
        seen = state.inspected[rank]
        known = not seen.acting if seen is not None else 0 in state.waits[rank]
        if known and _pauses(state, rank):
            found.add(rank)
    return found


def _freed(state: WaitState, op: Operation, live: set[int]) -> bool:
    if op.is_message:
        if op.wildcard or op.deferred:
            # any rank that can still send may serve it, and so may a message that is there and
            # that the matcher has only to choose
            others = set(state.groups[op.group].members) - {op.rank}
            return bool(others & live) or any(first.rank == op.rank for first in state.ready)
        return op.peer in live
    return not op.doomed and set(state.missing(op)) <= live


def _peers(state: WaitState, op: Operation) -> tuple[int, ...]:
    """Return the ranks that ``op`` waits for."""
    if op.wildcard:
        return tuple(m for m in state.groups[op.group].members if m != op.rank)
    if op.is_message:
        return (op.peer,)
    return tuple(state.missing(op))


def deadlock(state: WaitState, *, certain: bool = False) -> Failure | None:
    """Return the deadlock that has been reached, with its cycle, or ``None``; see :func:`stuck`."""
    dead = stuck(state, certain=certain)
    if not dead:
        return None
    waits = {rank: wait_of(state, rank) for rank in dead}
    cycle = cycle_of(waits)
    named = cycle or dead
    message, others = told(waits, named)
    peers = {peer for rank in dead for peer in waits[rank].peers}
    killed, ended = sorted(peers & state.killed), sorted(peers & state.ended - state.killed)
    over = "ended" if state.is_script else "returned"
    if not cycle and killed:
        message += f"; but rank {killed[0]} has been killed"
    elif not cycle and ended:
        has = "has" if len(ended) == 1 else "have"
        lost = [wait for wait in waits.values() if set(wait.peers) & set(ended)]
        calls = {wait.call for wait in lost}
        never = _NEVER.get(calls.pop(), _CALL) if len(calls) == 1 else _CALL
        if never == "send" and any(wait.other_tag for wait in lost):
            never += " what fits"  # it has sent something, as the text of the wait says
        message += f"; but {ranks_text(ended)} {has} already {over} and will never {never}"
    # the report on a script lists all that wait
    detail = () if state.is_script else tuple(others)
    # a rank that receives from one that sends would need more than buffers: that one's next call
    if all(waits[rank].call == "send" for rank in named) and _freed_by_buffers(state, dead):
        detail += (_BUFFERS,)
    hangs = _hangs(waits, cycle, killed or ended, "killed" if killed else over)
    detail += tuple(f"{hang.label}: {hang}" for hang in hangs[1:] if state.is_script)
    first = waits[named[0]]
    return Failure(
        Diagnosis.DEADLOCK,
        message,
        first.rank,
        first.site,
        detail,
        waits=tuple(waits.values()),
        cycle=tuple(cycle),
        ended=tuple(ended),
        killed=tuple(killed),
        hang=hangs[0] if hangs else None,
    )


def _hangs(waits: dict[int, Wait], cycle: list[int], gone: list[int], fate: str) -> list[Hang]:
    """Return who holds up whom in a deadlock: what holds up most ranks first."""
    behind = waiters(waits)
    # the threads of a rank may wait for each other, and nobody else may know a key of the store
    alone = [rank for rank, wait in waits.items() if not wait.peers or wait.call == "store"]
    found = [(HangKind.NEVER_ENTERED, gone, fate), (HangKind.NEVER_ENTERED, alone, "")]
    rest = {rank: wait for rank, wait in waits.items() if rank not in alone}
    while cycle and cycle[0] in rest:
        found.append((HangKind.CIRCLE, cycle, ""))
        rest = {rank: rest[rank] for rank in rest.keys() - {*cycle} - held_up(behind, cycle)}
        cycle = cycle_of(rest)
    hangs = []
    for kind, culprits, become in found:
        held = held_up(behind, culprits) - {*culprits}
        if culprits and (held or kind is HangKind.CIRCLE):
            ranks = tuple(culprits), tuple(sorted(held))
            hangs.append(Hang(kind, Grade.ESTABLISHED, *ranks, become))
    return sorted(hangs, key=lambda one: -len({*one.culprits, *one.held} & waits.keys()))


def waiters(waits: Mapping[int, Wait]) -> Mapping[int, Sequence[int]]:
    """Return by rank who waits for it."""
    behind = defaultdict(list)
    for rank, wait in waits.items():
        for peer in wait.peers:
            behind[peer].append(rank)
    return behind


def held_up(behind: Mapping[int, Sequence[int]], culprits: Sequence[int]) -> set[int]:
    """Return the ranks that wait for the culprits, or for ranks that wait for them.

    Args:
        behind: by rank, who waits for it.
        culprits: ranks.
    """
    held: set[int] = set()
    coming = list(culprits)
    while coming:
        new = {*behind.get(coming.pop(), ())} - held
        held |= new
        coming += new
    return held


def told(waits: Mapping[int, Wait], named: Sequence[int]) -> tuple[str, list[str]]:
    """Return in a sentence what some ranks wait for, and what is left to tell of all of them."""
    leading = len(told_together(waits[rank] for rank in named))
    shown = min(leading, _SHOWN)
    others = [rank for rank in waits if rank not in named]
    alike = told_together(waits[rank] for rank in [*named, *others])
    more = f", … ({len(named)} ranks in all)" if shown < leading else ""
    return ", ".join(alike[:shown]) + more, alike[shown:]


def told_together(waits: Iterable[Wait]) -> list[str]:
    """Return what ranks wait for, with those together that wait for the same, in their order."""
    together: dict[tuple[str, int], list[int]] = {}
    for wait in waits:
        # what a rank waits for in a thread of its own is not what another one waits for
        own = wait.rank if " its " in wait.text else -1
        together.setdefault((wait.text, own), []).append(wait.rank)
    return [
        f"rank {ranks[0]} {text}"
        if len(ranks) == 1
        else f"{ranks_text(ranks)} wait{text.removeprefix('waits')}"
        for (text, _), ranks in together.items()
    ]


def _freed_by_buffers(state: WaitState, dead: list[int]) -> bool:
    """Return whether all ranks of a deadlock could go on if sends were buffered.

    A send whose receiver has returned, or receives on another tag, is a mistake even with
    buffers.
    """
    needs = {rank: _awaited_by_thread(state, rank, certain=False) or [] for rank in dead}
    waited = [
        op for needed in needs.values() for ops in needed for op in ops if isinstance(op, Operation)
    ]
    sends = [op for op in waited if op.kind == "send"]
    if not sends or any(op.peer in state.ended for op in sends):
        return False
    if any(_misplaced_counterpart(state, op) for op in waited):
        return False
    return _live(state, needs, buffered=True) >= set(dead)


def wait_of(state: WaitState, rank: int) -> Wait:
    """Return what a rank waits for, in all its threads."""
    held = sorted(state.waits[rank].items(), key=lambda one: (one[0] != 0, one[1].op.number))
    seen = state.inspected[rank]
    idle = {thread: Site(file, line) for thread, file, line in (seen.idle if seen else ())}
    if not held and seen is not None and seen.store:
        _, keys, file, line = min(seen.store)
        # the prefixes that torch has put before the key end with two slashes, or one
        names = ", ".join(repr(key.rpartition("//")[2]) for key in keys)
        others = sorted(state.killed) or [r for r in range(state.size) if r != rank]
        text = f"waits at {Site(file, line)} for {names} in the store"
        return Wait(rank, tuple(others), text, Site(file, line), "store", True)
    if not held:
        places = [site for _, site in sorted(idle.items()) if site.line]
        site = places[0] if places else None
        operations = [state.operations[rank][op] for ops in _callbacks(seen) for op in ops]
        if begun := min((op for op in operations if not op.matched), default=None, key=_number):
            text = wait_text(state, Awaited(begun, site or begun.site, 0))
            return Wait(rank, _peers(state, begun), text, site or begun.site, begun.kind)
        at = f" at {site}" if site else ""
        text = f"waits{at} for what only another thread of its own can do, and none can go on"
        return Wait(rank, (), text, site)
    texts = [wait_text(state, awaited) for _, awaited in held]
    first, (thread, awaited) = texts[0], held[0]
    if thread != 0:
        inside = _in_thread(state, rank, thread)
        if 0 in idle and idle[0].line:
            inside += f", for which its main thread waits at {idle[0]},"
        first = first.replace("waits", f"waits{inside}", 1)
    if len(texts) > 1:
        first += f", and {texts[1]}{_in_thread(state, rank, held[1][0])}"
    if len(texts) > 2:
        first += f" ({len(texts)} threads in all)"
    peers = dict.fromkeys(peer for _, one in held for peer in _peers(state, one.op))
    op = awaited.op
    site = awaited.site if awaited.site.line else None
    other = _misplaced_counterpart(state, op)
    other_tag = other is not None and other.tag != op.tag
    return Wait(rank, tuple(peers), first, site, op.kind, op.wildcard, other_tag)


def _in_thread(state: WaitState, rank: int, thread: int) -> str:
    """Return in which thread, by the name that the program gives it, if that is known."""
    names = (op.thread_name for op in state.operations[rank] if op.thread == thread)
    name = next(filter(None, names), "")
    return f" in its thread {name}" if name else " in another thread"


def _callbacks(seen: Inspected | None) -> list[list[int]]:
    return seen.callbacks if seen is not None else []


def _number(op: Operation) -> int:
    return op.number


def given_up(state: WaitState, rank: int) -> str:
    """Return what a rank waited for until its own time limit ended, or an empty string."""
    given = [op for op in state.operations[rank] if op.limit and op.done is None]
    if not given:
        return ""
    op = max(given, key=lambda op: op.blocked or 0)
    text = wait_text(state, Awaited(op, op.blocked_site or op.site, op.limit))
    return text.replace("waits", "waited", 1)


def never_joined(state: WaitState, rank: int) -> str:
    """Return which collective a rank has called that another one never can, or an empty string."""
    for op in state.operations[rank]:
        if op.is_message or op.matched or op.done is not None or op.failed:
            continue
        gone = [other for other in state.missing(op) if other in state.ended - state.killed]
        if gone:
            inside = ", inside torch," if op.by_torch else ""
            who, do = ranks_text(gone), "does" if len(gone) == 1 else "do"
            own = "its" if len(gone) == 1 else "their"
            part, over = ("script", "ended") if state.is_script else ("function", "returned")
            parts = f"{own} {part} has" if len(gone) == 1 else f"{own} {part}s have"
            return f"calls {op.kind} at {op.site}{inside} and {who} never {do}: {parts} {over}"
    return ""


def wait_text(state: WaitState, awaited: Awaited) -> str:
    """Return what a thread waits for, such as "waits to receive from rank 1 at line 5"."""
    op, site, limit = awaited
    peers = _peers(state, op)
    # a thread of a pool may call torch from no line of the student's
    at = f" at {site}" if site.line else ""
    if site != op.site and op.site.line:
        at += f" (posted at {op.site})"
    if limit:
        at += f", for {limit / 1000:g} s at most"
    if op.kind == "send":
        text = f"waits to send to rank {op.peer}{at}"
    elif op.wildcard:
        text = f"waits to receive from any rank{at}"
    elif op.kind == "recv":
        text = f"waits to receive from rank {op.peer}{at}"
    else:
        text = f"waits in {op.kind}{at} for {ranks_text(peers)}"
    return text + _elsewhere_text(state, op)


def polled_wait(state: WaitState, rank: int) -> Wait | None:
    """Return what a rank asks about in vain, as a wait for it; None if there is no such thing."""
    if not _polls_in_vain(state, rank):
        return None
    op = state.operations[rank][min(state.polling[rank])]
    over = sorted(state.ended & {*_peers(state, op)})
    ended = f"; {ranks_text(over)} {'have' if len(over) > 1 else 'has'} ended" if over else ""
    text = f"{wait_text(state, Awaited(op, op.site, 0))} (polling){ended}"
    return Wait(rank, tuple(_peers(state, op)), text, op.site, op.kind, op.wildcard)


def _misplaced_counterpart(state: WaitState, op: Operation) -> Operation | None:
    """Return the counterpart that is posted on another tag or group, if there is one."""
    if not op.is_message:
        return None
    wanted = "recv" if op.kind == "send" else "send"
    ranks = range(state.size) if op.wildcard else (op.peer,)
    for rank in ranks:
        for other in state.operations[rank]:
            fits = other.kind == wanted and not other.matched and other.peer in (op.rank, -1)
            if fits and (other.tag != op.tag or other.group != op.group):
                return other
    return None


def _elsewhere_text(state: WaitState, op: Operation) -> str:
    """Return a remark on a counterpart that is posted elsewhere, or an empty string."""
    other = _misplaced_counterpart(state, op)
    if other is None:
        return ""
    verb = "sends" if other.kind == "send" else "receives"
    if other.tag != op.tag:
        return f" with tag {op.tag}, while rank {other.rank} {verb} with tag {other.tag}"
    return f" in group {op.group}, while rank {other.rank} {verb} in group {other.group}"


def cycle_of(waits: dict[int, Wait]) -> list[int]:
    """Return a cycle of ranks that wait for each other, from its lowest rank, or an empty list."""
    seen: set[int] = set()
    for start in sorted(waits):
        if start in seen:
            continue
        # depth first with an explicit stack, since there may be thousands of ranks
        seen.add(start)
        path, ahead = {start: None}, [iter(waits[start].peers)]
        while path:
            peer = next((peer for peer in ahead[-1] if peer in waits), None)
            if peer is None:
                path.popitem()
                ahead.pop()
            elif peer in path:
                ranks = list(path)
                cycle = ranks[ranks.index(peer) :]
                low = cycle.index(min(cycle))
                return cycle[low:] + cycle[:low]
            elif peer not in seen:
                seen.add(peer)
                path[peer] = None
                ahead.append(iter(waits[peer].peers))
    return []
