"""Who waits for whom, and who can never go on.

A rank is *live* if it runs, or waits for an operation whose counterpart is
posted, or waits for a live rank: for one of several where a wildcard receive
would take any message, for all of them where a collective needs everybody.
The live ranks are the least set closed under these rules.  Everyone else has
reached a deadlock, for certain and at once: the counterparts that they need
can only be posted by ranks that will post nothing more.

This is the AND-OR graph of Hilbrich et al., *MPI Runtime Error Detection with
MUST: Advances in Deadlock Detection* (2012), section 3, evaluated on every
post instead of after a timeout.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.traffic.board import Board
from grader.traffic.trace import Operation
from grader.verdict import Diagnosis, Failure, Wait

__all__ = ["deadlock", "quiescent", "stuck", "waiting"]

#: Ranks that a message lists one by one; of more, the first and the last.
_MANY = 16

#: Follows the message of a deadlock that buffers would dissolve.
_BUFFERS = (
    ". This can only work where sends are buffered, as MPI may do with small messages;"
    " with gloo, or with large messages, it hangs"
)


def quiescent(board: Board) -> bool:
    """Whether nothing happens any more unless a wildcard is given a message."""
    return all(
        rank in board.ended or rank in board.polling or (op is not None and not _satisfied(op))
        for rank, op in enumerate(board.blocked)
    )


def _satisfied(op: Operation) -> bool:
    """Whether the transport will complete the operation by itself."""
    lost = op.failed or op.doomed or (op.partner is not None and op.partner.failed)
    return op.matched and not lost


def stuck(board: Board) -> list[int]:
    """Ranks that wait and can never go on, in rank order."""
    waits = waiting(board)
    live = set(range(board.size)) - set(waits) - board.ended
    changed = True
    while changed:
        newly = {rank for rank, op in waits.items() if rank not in live and _freed(board, op, live)}
        live |= newly
        changed = bool(newly)
    return sorted(set(waits) - live)


def waiting(board: Board) -> dict[int, Operation]:
    """Ranks that wait for an operation which the transport cannot complete yet."""
    return {
        rank: op for rank, op in enumerate(board.blocked) if op is not None and not _satisfied(op)
    }


def _freed(board: Board, op: Operation, live: set[int]) -> bool:
    if op.is_message:
        if op.wildcard or op.deferred:
            # Served by anyone who can still send, or by a message that is
            # there and only waits for the board to choose.
            others = set(board.groups[op.group].members) - {op.rank}
            return bool(others & live) or any(
                board.candidates(first)
                for first in board.first_wildcards()
                if first.rank == op.rank
            )
        return op.peer in live
    return not op.doomed and set(board.missing(op)) <= live


def _peers(board: Board, op: Operation) -> tuple[int, ...]:
    """The ranks that ``op`` waits for."""
    if op.wildcard:
        return tuple(m for m in board.groups[op.group].members if m != op.rank)
    if op.is_message:
        return (op.peer,)
    return tuple(board.missing(op))


def deadlock(board: Board) -> Failure | None:
    """The deadlock that has been reached, if one has, with its cycle."""
    dead = stuck(board)
    if not dead:
        return None
    waits = {rank: _wait(board, rank) for rank in dead}
    cycle = _cycle(waits)
    named = cycle or dead
    message = ", ".join(f"rank {rank} {waits[rank].text}" for rank in named[:4])
    if len(named) > 4:
        message += f", … ({len(named)} ranks in all)"
    ended = sorted({peer for rank in dead for peer in waits[rank].peers} & board.ended)
    if not cycle and ended:
        message += f"; but {_ranks(ended)} will post nothing more: the function has returned there"
    if _freed_by_buffers(board, dead):
        message += _BUFFERS
    shown = set(named[:4])
    others = [] if shown == set(dead) else dead
    detail = tuple(f"rank {rank} {waits[rank].text}" for rank in others)
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
    )


def _freed_by_buffers(board: Board, dead: list[int]) -> bool:
    """Whether every rank of a deadlock could go on if sends did not wait for their receives.

    That is the fixpoint of :func:`stuck`, begun with the ranks that wait to send.  A send
    whose receiver has returned, or that is received on another tag, is a mistake with
    buffers as well.
    """
    waits = {rank: op for rank, op in waiting(board).items() if rank in dead}
    sends = {rank: op for rank, op in waits.items() if op.kind == "send"}
    if not sends or any(op.peer in board.ended for op in sends.values()):
        return False
    if any(_other_tag(board, op) for op in waits.values()):
        return False
    live = set(range(board.size)) - board.ended - set(dead) | set(sends)
    newly = live
    while newly:
        newly = {rank for rank, op in waits.items() if rank not in live and _freed(board, op, live)}
        live = live | newly
    return live >= set(dead)


def _wait(board: Board, rank: int) -> Wait:
    op = board.blocked[rank]
    assert op is not None
    peers = _peers(board, op)
    site = op.blocked_site or op.site
    at = f"at {site}"
    if site != op.site:
        at += f" (posted at {op.site})"
    if op.kind == "send":
        text = f"waits to send to rank {op.peer} {at}"
    elif op.wildcard:
        text = f"waits to receive from any rank {at}"
    elif op.kind == "recv":
        text = f"waits to receive from rank {op.peer} {at}"
    else:
        text = f"waits in {op.kind} {at} for {_ranks(peers)}"
    return Wait(rank, peers, text + _other_tag(board, op), site, op.kind, op.wildcard)


def _ranks(ranks: Iterable[int]) -> str:
    names = [str(rank) for rank in ranks]
    if len(names) == 1:
        return f"rank {names[0]}"
    shown = names if len(names) <= _MANY else [*names[: _MANY - 2], "…", names[-1]]
    count = f" ({len(names)} in all)" if len(names) > _MANY else ""
    return f"ranks {', '.join(shown)}{count}"


def _other_tag(board: Board, op: Operation) -> str:
    """Says so if the counterpart is there, but on another tag."""
    if not op.is_message:
        return ""
    wanted = "recv" if op.kind == "send" else "send"
    ranks = range(board.size) if op.wildcard else (op.peer,)
    for rank in ranks:
        for other in board.operations[rank]:
            fits = other.kind == wanted and not other.matched and other.peer in (op.rank, -1)
            if fits and (other.tag != op.tag or other.group != op.group):
                verb = "sends" if wanted == "send" else "receives"
                if other.tag != op.tag:
                    return f" with tag {op.tag}, while rank {rank} {verb} with tag {other.tag}"
                return f" in group {op.group}, while rank {rank} {verb} in group {other.group}"
    return ""


def _cycle(waits: dict[int, Wait]) -> list[int]:
    """A cycle among ranks that wait for each other, from its lowest rank."""
    for start in sorted(waits):
        path, rank = [start], start
        while True:
            nexts = [peer for peer in waits[rank].peers if peer in waits]
            if not nexts:
                break
            rank = nexts[0]
            if rank in path:
                cycle = path[path.index(rank) :]
                low = cycle.index(min(cycle))
                return cycle[low:] + cycle[:low]
            path.append(rank)
    return []
