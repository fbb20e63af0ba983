"""Measure what several ways to solve an exercise cost, to show a learner's own beside them.

Each way runs on real ranks, on the case of the exercise with the most data, and what its trace
says is written to ``grader/course/costs.json``.  Run it as ``python -m tools.ways`` after a change
of a solution or of an exercise's cases; a test compares the file with new measurements.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch
import torch.distributed as dist

from grader.course.chapters import discover
from grader.course.costs import tree_levels
from grader.course.index import COSTS
from grader.exercise.cases import Case, nbytes
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import Comparison, Way
from grader.submission.submission import Submission, live_program
from headcount.core.program import Program
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from tools.rounds import ROOT

#: The number of ranks of every comparison.
RANKS = 8


# The plain ways that are no solution of an exercise. ------------------------------


def tree_scatter(out: torch.Tensor, chunks: list[torch.Tensor] | None, src: int) -> None:
    """Send half of the ranks what they need in one message, and let each half do the same."""
    n, rank = dist.get_world_size(), dist.get_rank()
    me, span = (rank - src) % n, 1 << tree_levels(n)
    if chunks is not None:
        held = torch.stack([chunks[(src + i) % n] for i in range(n)])
    while span > 1:
        half = span // 2
        if me % span == 0 and me + half < n:
            dist.send(held[half : 2 * half], (rank + half) % n)
        elif me % span == half:
            held = torch.empty(min(half, n - me), *out.shape, dtype=out.dtype)
            dist.recv(held, (rank - half) % n)
        span = half
    out.copy_(held[0])


def tree_gather(x: torch.Tensor, dst: int) -> list[torch.Tensor] | None:
    """Collect in pairs of ranks, in pairs of pairs, and so on; what one holds is one message."""
    n, rank = dist.get_world_size(), dist.get_rank()
    me, half, held = (rank - dst) % n, 1, torch.stack([x])
    while half < n:
        if me % (2 * half) == half:
            dist.send(held, (rank - half) % n)
            return None
        if me + half < n:
            theirs = torch.empty(min(half, n - me - half), *x.shape, dtype=x.dtype)
            dist.recv(theirs, (rank + half) % n)
            held = torch.cat([held, theirs])
        half *= 2
    return [held[(i - dst) % n] for i in range(n)]


def gather_then_broadcast(x: torch.Tensor) -> list[torch.Tensor]:
    """Gather to rank 0, which sends everything to everyone."""
    n, rank = dist.get_world_size(), dist.get_rank()
    parts = torch.empty(n, *x.shape, dtype=x.dtype)
    if rank == 0:
        parts[0] = x
        for src in range(1, n):
            dist.recv(parts[src], src)
        for dst in range(1, n):
            dist.send(parts, dst)
    else:
        dist.send(x, 0)
        dist.recv(parts, 0)
    return list(parts)


def reduce_then_scatter(chunks: list[torch.Tensor], op: dist.ReduceOp) -> torch.Tensor:
    """Reduce everything to rank 0, which sends every rank its chunk."""
    n, rank = dist.get_world_size(), dist.get_rank()
    mine = torch.stack(chunks)
    if rank:
        dist.send(mine, 0)
        dist.recv(out := torch.empty_like(chunks[0]), 0)
        return out
    for src in range(1, n):
        dist.recv(theirs := torch.empty_like(mine), src)
        mine += theirs
    for dst in range(1, n):
        dist.send(mine[dst], dst)
    return mine[0]


def in_the_same_order(chunks: list[torch.Tensor]) -> list[torch.Tensor]:
    """Send to rank 0 first, then to rank 1, and so on, on every rank."""
    n, rank = dist.get_world_size(), dist.get_rank()
    out = [torch.empty_like(chunks[rank]) for _ in range(n)]
    out[rank] = chunks[rank].clone()
    others = [peer for peer in range(n) if peer != rank]
    requests = [dist.isend(chunks[peer], peer) for peer in others]
    requests += [dist.irecv(out[peer], peer) for peer in others]
    for request in requests:
        assert request is not None
        request.wait()
    return out


def padded_all_to_all(rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """Agree on the longest piece, and pad every message to it, a count and then the rows."""
    n, rank = dist.get_world_size(), dist.get_rank()
    longest, step = torch.tensor([max(counts)]), 1
    while step < n:
        request = dist.isend(longest, (rank + step) % n)
        dist.recv(theirs := torch.empty_like(longest), (rank - step) % n)
        assert request is not None
        request.wait()
        longest, step = torch.maximum(longest, theirs), 2 * step
    pieces = rows.split(counts)
    row = rows.new_empty(rows.shape[1:]).nbytes
    parts = list(pieces)
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        message = torch.zeros(8 + int(longest) * row, dtype=torch.uint8)
        message[:8] = torch.tensor([counts[dst]]).view(torch.uint8)
        message[8 : 8 + counts[dst] * row] = pieces[dst].flatten().view(torch.uint8)
        request = dist.isend(message, dst)
        dist.recv(came := torch.empty_like(message), src)
        assert request is not None
        request.wait()
        count = int(came[:8].view(torch.int64))
        values = came[8 : 8 + count * row].view(rows.dtype)
        parts[src] = values.view(count, *rows.shape[1:])
    return torch.cat(parts)


def central_barrier() -> None:
    """Tell rank 0, which tells everyone once it has heard of all."""
    n, rank = dist.get_world_size(), dist.get_rank()
    token = torch.zeros(1)
    for peer in range(1, n):
        if rank == 0:
            dist.recv(token, peer)
        elif rank == peer:
            dist.send(token, 0)
    for peer in range(1, n):
        if rank == 0:
            dist.send(token, peer)
        elif rank == peer:
            dist.recv(token, 0)


def ring_sum(x: torch.Tensor) -> None:
    """Add up around the ring, and pass the sums on, in the dtype of x."""
    n, rank = dist.get_world_size(), dist.get_rank()
    chunks = x.view(-1).tensor_split(n)
    for first, adds in ((rank, True), (rank + 1, False)):
        for step in range(n - 1):
            mine, into = chunks[(first - step) % n], chunks[(first - step - 1) % n]
            request = dist.isend(mine, (rank + 1) % n)
            dist.recv(came := torch.empty_like(into), (rank - 1) % n)
            into.copy_(into + came if adds else came)
            assert request is not None
            request.wait()


# The ways of each exercise: the name of one whose solution it is, or a function. -----

_Ways = Mapping[str, str | Callable[..., Any]]

_TREES: _Ways = {"a loop": "broadcast", "a tree": "tree_broadcast"}
_GATHERS: _Ways = {
    "through one rank": gather_then_broadcast,
    "pairwise": "all_gather",
    "around a ring": "ring_all_gather",
}
_SCATTERS: _Ways = {
    "through one rank": reduce_then_scatter,
    "pairwise": "reduce_scatter",
    "around a ring": "ring_reduce_scatter",
}
_REDUCTIONS: _Ways = {"through a root": "all_reduce_rooted", "around a ring": "ring_all_reduce"}
_ALL_REDUCES: _Ways = {
    **_REDUCTIONS,
    "recursive doubling": "recursive_doubling_all_reduce",
    "halving, doubling": "halving_doubling_all_reduce",
}
_REDUCES: _Ways = {"a loop": "reduce", "a tree": "tree_reduce"}

WAYS: Mapping[str, _Ways] = {
    "broadcast": _TREES,
    "tree_broadcast": _TREES,
    "scatter": {"a loop": "scatter", "a tree": tree_scatter},
    "gather": {"a loop": "gather", "a tree": tree_gather},
    "reduce": _REDUCES,
    "tree_reduce": _REDUCES,
    "all_gather": _GATHERS,
    "ring_all_gather": _GATHERS,
    "reduce_scatter": _SCATTERS,
    "ring_reduce_scatter": _SCATTERS,
    "all_reduce_rooted": _REDUCTIONS,
    "all_reduce_sharded": {
        "through a root": "all_reduce_rooted",
        "in two stages": "all_reduce_sharded",
    },
    "ring_all_reduce": _REDUCTIONS,
    "all_to_all": {"same order": in_the_same_order, "rotating peers": "all_to_all"},
    "all_to_all_uneven": {"padded": padded_all_to_all, "counts first": "all_to_all_uneven"},
    "barrier": {"through one rank": central_barrier, "dissemination": "barrier"},
    "recursive_doubling_all_reduce": _ALL_REDUCES,
    "halving_doubling_all_reduce": _ALL_REDUCES,
    "scatter_all_gather_broadcast": {
        **_TREES,
        "scatter, all-gather": "scatter_all_gather_broadcast",
    },
    "quantized_all_reduce": {
        "float32, in a ring": ring_sum,
        "int8, directly": "quantized_all_reduce",
    },
}


def _leaves(c: Case) -> int:
    """Return the bytes of the rows that leave the rank with most of them."""
    pieces = [rows.split(counts) for rows, counts in zip(c.rows, c.counts, strict=True)]
    return max(nbytes(c.rows[i]) - nbytes(pieces[i][i]) for i in c.ranks)


# Bytes that some rank must send at least, with messages between pairs of ranks: it holds data
# that must leave it (broadcast, scatter, gather, reduce, an uneven all-to-all), or the mean of
# what must arrive (the others; for the all-reduce, Patarasuk and Yuan, *Bandwidth optimal
# all-reduce algorithms*, 2009).
_LEAST: Mapping[str, Callable[[Case], int | None]] = {
    "broadcast": lambda c: nbytes(c.x[0]),
    "tree_broadcast": lambda c: nbytes(c.x[0]),
    "scatter": lambda c: (c.n - 1) * nbytes(c.out[0]),
    "gather": lambda c: nbytes(c.x[0]),
    "reduce": lambda c: nbytes(c.x[0]),
    "tree_reduce": lambda c: nbytes(c.x[0]),
    "all_gather": lambda c: (c.n - 1) * nbytes(c.x[0]),
    "ring_all_gather": lambda c: (c.n - 1) * nbytes(c.x[0]),
    "reduce_scatter": lambda c: (c.n - 1) * nbytes(c.chunks[0][0]),
    "ring_reduce_scatter": lambda c: (c.n - 1) * nbytes(c.chunks[0][0]),
    "all_reduce_rooted": lambda c: 2 * (c.n - 1) * nbytes(c.x[0]) // c.n,
    "all_reduce_sharded": lambda c: 2 * (c.n - 1) * nbytes(c.x[0]) // c.n,
    "ring_all_reduce": lambda c: 2 * (c.n - 1) * nbytes(c.x[0]) // c.n,
    "all_to_all": lambda c: (c.n - 1) * nbytes(c.chunks[0][0]),
    "all_to_all_uneven": _leaves,
    "barrier": lambda c: None,
    "recursive_doubling_all_reduce": lambda c: 2 * (c.n - 1) * nbytes(c.x[0]) // c.n,
    "halving_doubling_all_reduce": lambda c: 2 * (c.n - 1) * nbytes(c.x[0]) // c.n,
    "scatter_all_gather_broadcast": lambda c: nbytes(c.x[0]),
    # how few bytes do depends on how far off the sum may be
    "quantized_all_reduce": lambda c: None,
}


def compared(exercise: Exercise) -> Comparison:
    """Measure the ways of an exercise.

    Raises:
        RuntimeError: a way fails.
    """
    catalogue = discover()
    cases = exercise.cases(0, RANKS)
    case = max(cases, key=lambda case: _data(case))
    ways = [
        _measured(name, exercise, case, *_program(way, catalogue))
        for name, way in WAYS[exercise.name].items()
    ]
    # in one round what is known of a rank at most doubles the ranks that know of it
    least = Way("each at least", None, _LEAST[exercise.name](case), tree_levels(RANKS))
    return Comparison(case.name, RANKS, (*ways, least))


def _data(case: Case) -> int:
    """Return the bytes of the tensors of rank 0."""
    return sum(
        nbytes(tensor)
        for value in case.arguments(0)
        for tensor in (value if isinstance(value, list) else [value])
        if isinstance(tensor, torch.Tensor)
    )


def _program(way: str | Callable[..., Any], catalogue: Catalogue[Exercise]) -> tuple[Program, str]:
    """Return a way's program, and the name of its function."""
    if callable(way):
        return live_program(way), way.__name__
    path = ROOT / "solutions" / f"{catalogue[way].chapter}.py"
    return Submission.from_file(path, catalogue).program, way


def _measured(name: str, exercise: Exercise, case: Case, program: Program, entry: str) -> Way:
    job = Job(
        entry,
        tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
    )
    with ProcessWorld(default_launcher(), case.n, program) as world:
        outcome = world.run(job)
    if outcome.failure is not None:
        raise RuntimeError(f"{exercise.name}, {name}: {outcome.failure.message}")
    traffic = outcome.trace.traffic
    # nanoseconds: the same digits on every machine
    seconds = round(outcome.trace.seconds, 9)
    return Way(name, traffic.messages, traffic.max_sent, traffic.rounds, seconds)


def text() -> str:
    """Return the file's content, measured anew."""
    catalogue = discover()
    found = {name: compared(catalogue[name]) for name in WAYS}
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"


def main() -> int:
    """Write the file."""
    COSTS.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
