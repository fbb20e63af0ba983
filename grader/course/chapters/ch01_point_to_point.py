"""Chapter 01: one rank sends, another receives."""

from collections.abc import Iterator
from itertools import cycle

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, PerRank, demo, kinds, nbytes, tags
from grader.exercise.compare import compare
from grader.exercise.declaration import Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, moved, one_each, point, rounds, total_bytes
from grader.exercise.verdict import Grade
from headcount.core.verdict import Diagnosis

_SEND_FIRST = Mistake(
    "Every rank that waits is in a send, or in the wait() of one that isend has started; and a send"
    " is complete only when its receive has been posted. Let one side receive first; or start the"
    " send with isend, receive, and only then call wait().",
    when=lambda e: bool(
        e.failure and e.failure.cycle and all(wait.call == "send" for wait in e.failure.waits)
    ),
    grade=Grade.ESTABLISHED,
)


def _pong(c: Case) -> list[torch.Tensor]:
    return [c.x[0] + 1, *c.x[1:]]


ping_pong = Exercise(
    signature="ping_pong(x: Tensor) -> Tensor",
    summary="rank 0 sends x to rank 1, which adds 1 and sends it back",
    inputs=lambda draw: (draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in kinds(draw.n)),
    values=Values(_pong),
    world_sizes=(2, 3, 4, 5, 8),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: 2),
            total_bytes("=", lambda c: 2 * nbytes(c.x[0])),
            one_each((0, 1), (1, 0)),
        ),
        carried=lambda c: {(0, 1): c.x[0], (1, 0): c.x[0] + 1},
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        Mistake(
            "What rank 0 returns is right, but it has not come that way. Rank 0 sends x, rank 1"
            " adds 1 to what it has received and sends that, and rank 0 returns what comes back.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE and compare(_pong(e.case), e.actual) is None
            ),
        ),
        Mistake(
            "Ranks 2 and up have no part in this game: they neither send nor receive, and return"
            " x.clone() at once.",
            when=lambda e: bool(e.failure and any(wait.rank > 1 for wait in e.failure.waits)),
        ),
    ),
)


def _pairings(draw: Draw) -> Iterator[Case]:
    n = draw.n
    neighbours = [r ^ 1 if (r | 1) < n else r for r in draw.ranks]
    mirror = [n - 1 - r for r in draw.ranks]
    ends = [n - 1 if r == 0 else 0 if r == n - 1 else r for r in draw.ranks]
    alone = list(draw.ranks)
    plans = {"neighbours": neighbours, "mirror": mirror, "ends": ends, "alone": alone}
    for kind, (name, peers) in zip(kinds(n), cycle(plans.items()), strict=False):
        yield draw.case(f"{kind}, {name}", x=draw.per_rank(kind), peer=PerRank(peers))


exchange = Exercise(
    signature="exchange(x: Tensor, peer: int) -> Tensor",
    summary="swap x with peer; a copy when peer is the rank itself",
    inputs=_pairings,
    values=Values(lambda c: [c.x[c.peer[r]] for r in c.ranks]),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: sum(c.peer[r] != r for r in c.ranks)),
            point(rounds("≤", lambda c: 1)),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), peer=PerRank(n - 1 - r for r in range(n))),
    mistakes=(
        _SEND_FIRST,
        *evidence.BUFFER_RACES,
    ),
)


def _shifts(draw: Draw) -> Iterator[Case]:
    n = draw.n
    for kind, k in zip(kinds(n), (1, -1, 2, n + 2, -(n + 3), 0, n, -2), strict=True):
        yield draw.case(f"{kind} by {k}", x=draw.per_rank(kind), k=k)


shift = Exercise(
    signature="shift(x: Tensor, k: int) -> Tensor",
    summary="the x of rank (r − k) mod n, for any k",
    inputs=_shifts,
    values=Values(lambda c: [c.x[(r - c.k) % c.n] for r in c.ranks]),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n if c.k % c.n else 0),
            point(rounds("=", lambda c: 1 if c.k % c.n else 0)),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), k=1),
    mistakes=(
        _SEND_FIRST,
        *evidence.BUFFER_RACES,
    ),
)
