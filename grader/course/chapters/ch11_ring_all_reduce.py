"""Chapter 11: every rank's tensors become one, and none sends more than another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import OPS, Case, Draw, Kind, PerRank, demo, tags
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    Growth,
    Mistake,
    TrafficRules,
    Values,
    reduced_in_place,
)
from grader.exercise.limits import combined, messages, neighbours_only, point, rounds, sent_elements
from headcount.core.verdict import Diagnosis

# The schedule of a ring. ------------------------------------------------------------

#: The chunk that is sent and the chunk that is received, for every step.
Pairs = list[tuple[int, int]]


def phase(rank: int, n: int, offset: int) -> Pairs:
    """Return n − 1 steps of a ring that begin with sending chunk ``rank − 1 + offset``."""
    return [((rank - s + offset) % n, (rank - s - 1 + offset) % n) for s in range(1, n)]


def schedule(rank: int, n: int, convention: int = 0) -> Pairs:
    """Return both phases; rank ends the first with chunk ``rank + convention``."""
    return phase(rank, n, convention) + phase(rank, n, convention + 1)


def _schedules(c: Case, make: Callable[[int, int], Pairs]) -> list[Pairs]:
    return [make(rank, c.world_size) for rank in c.rank]


def _questions(draw: Draw) -> Iterator[Case]:
    # on a ring of two, many mistakes look alike: a larger one comes first, and
    # it is not the one that the function runs on
    asked = PerRank((rank + 2) % 5 for rank in draw.ranks)
    # without a formula where one rank asks
    name = "rank r asks for ring_schedule((r + 2) % 5, 5)" if draw.n > 1 else "ring_schedule(2, 5)"
    yield draw.case(name, rank=asked, world_size=5)
    name = f"rank r asks for ring_schedule(r, {draw.n})" if draw.n > 1 else "ring_schedule(0, 1)"
    yield draw.case(name, rank=PerRank(draw.ranks), world_size=draw.n)


ring_schedule = Exercise(
    signature="ring_schedule(rank: int, world_size: int) -> list[tuple[int, int]]",
    summary="the 2(n − 1) pairs (chunk to send, chunk to receive) of the ring all-reduce",
    inputs=_questions,
    values=Values(lambda c: _schedules(c, schedule)),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
)


# The ring all-reduce. ---------------------------------------------------------------


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def _awaits_the_wrong_one(e: Evidence) -> bool:
    """Return whether every rank waits to receive from a rank that has sent it nothing."""
    waits = e.failure.waits if e.failure else ()
    sent = {(op.peer, op.rank) for op in e.trace.sends()}
    return len(waits) == e.case.n > 2 and all(
        wait.call == "recv" and (wait.rank, peer) not in sent
        for wait in waits
        for peer in wait.peers
    )


#: What a message that only one end expects can lead to.
_LOST = (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)


def _tensors(draw: Draw) -> Iterator[Case]:
    n = draw.n
    cases = (
        ("SUM", Kind(torch.int64, (2 * n,))),
        ("SUM", Kind(torch.int64, (n + 1,))),
        ("AVG", Kind(torch.float32, (2, 2 * n))),
        ("MIN", Kind(torch.int64, (3, 5))),
        ("PRODUCT", Kind(torch.float64, (n,))),
        ("SUM", Kind(torch.bfloat16, (7,))),
        ("MAX", Kind(torch.float32, (n - 1,))),
        ("SUM", Kind(torch.float32, (1,))),
        ("SUM", Kind(torch.float32, (0,))),
        ("AVG", Kind(torch.float64, (1000,), special=True)),
    )
    for name, kind in dict.fromkeys(cases):  # 2n and n + 1 can be the same
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


def _on_many_ranks(draw: Draw) -> Case:
    x = draw.per_rank(Kind(torch.int64, (draw.n,)), "SUM")
    return draw.case("SUM of one number a chunk", x=x, op=OPS["SUM"])


ring_all_reduce = Exercise(
    signature="ring_all_reduce(x: Tensor, op) -> None",
    summary="in place, around the ring in chunks: SUM, AVG, MIN, MAX or PRODUCT, any length",
    inputs=_tensors,
    values=reduced_in_place(same_bits=True),
    # on two ranks left and right are one, and many mistakes look alike
    world_sizes=(1, 3, 2, 4, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(neighbours_only()),
            # every chunk is sent 2(n − 1) times in all, so however x is cut, the rank that
            # sends most sends at least the mean
            point(sent_elements("≤", lambda c: 2 * (c.n - 1) * -(-length(c) // c.n))),
            point(sent_elements("≥", lambda c: 2 * (c.n - 1) * length(c) // c.n)),
            point(rounds("≤", lambda c: 2 * (c.n - 1))),
            point(rounds("≥", lambda c: 2 * (c.n - 1) if length(c) >= c.n else 0)),
        ),
        growth=Growth(_on_many_ranks),
        least=combined,
    ),
    points=3,
    demo=lambda n: demo(n, x=tags(n, n), op=OPS["SUM"]),
    mistakes=(
        Mistake(
            "An index is past the end. Is it the number of a chunk? Chunks are numbered 0 to n − 1:"
            " take it modulo n. Or does it count steps? There are 2(n − 1) of them, n − 1 in each"
            " phase.",
            when=lambda e: e.raised("IndexError"),
        ),
        Mistake(
            "The length is smaller than n here, so some chunks are empty. You may send them or"
            " leave them out, but both ends have to do the same: let sender and receiver look at"
            " the size of the same chunk.",
            when=lambda e: e.diagnosis in _LOST and length(e.case) < e.case.n,
        ),
        Mistake(
            "Every rank sends and none receives: a blocking send waits for its receive. Start"
            " with request = dist.isend(...), then recv, then request.wait().",
            when=evidence.all_send,
        ),
        Mistake(
            "Each rank waits for a neighbour that does not send to it: in both phases send to"
            " (rank + 1) % n and receive from (rank - 1) % n.",
            when=_awaits_the_wrong_one,
        ),
        Mistake(
            "The chunks are not all of one size. The buffer has to be as long as the chunk that"
            " comes: torch.empty_like(chunks[receive]), anew in each step.",
            when=lambda e: (
                e.diagnosis is Diagnosis.SIZE_MISMATCH and length(e.case) % e.case.n != 0
            ),
        ),
        *evidence.BUFFER_RACES[1:],
        evidence.AVERAGE_ALONE,
        Mistake(
            "There is a step too many: each phase has n − 1 steps, and every rank sends 2(n − 1)"
            " messages.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and e.trace.traffic.messages > 2 * e.case.n * (e.case.n - 1)
            ),
        ),
        Mistake(
            "Whole tensors are sent. The point of the ring is that a message holds one chunk, 1/n"
            " of x: cut x with tensor_split(n).",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and any(op.count == length(e.case) > 1 for op in e.trace.sends())
            ),
        ),
    ),
)
