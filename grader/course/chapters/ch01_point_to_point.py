"""Chapter 01: one rank sends, another receives."""

from collections.abc import Iterator
from itertools import cycle

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, PerRank, demo, kinds, nbytes, tags
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import messages, moved, one_each, point, rounds, total_bytes

_SEND_FIRST = Mistake(
    "A send returns only when its receive has been posted. Every rank that waits is in a send, so"
    " they wait forever: let one side receive first, or start the send with isend.",
    when=lambda e: bool(
        e.failure and e.failure.cycle and all(wait.call == "send" for wait in e.failure.waits)
    ),
)

_WAIT = {
    Diagnosis.UNWAITED_REQUEST: "isend and irecv return a request; call its wait() before you"
    " return.",
}


def _silent(e: Evidence) -> bool:
    """Return whether no message was sent wherever values are wrong."""
    return all(one.trace.traffic.messages == 0 for one in e.failed)


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
        )
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        Mistake(
            "Ranks 2 and up have no part in this game: they neither send nor receive, and return"
            " x.clone() at once.",
            when=lambda e: bool(e.failure and any(wait.rank > 1 for wait in e.failure.waits)),
        ),
        Mistake(
            "Both ranks send first, and a send returns only when its receive has been posted. They"
            " have to take turns: 0 sends while 1 receives, then the other way round.",
            when=lambda e: bool(
                e.failure
                and set(e.failure.cycle) == {0, 1}
                and all(wait.call == "send" for wait in e.failure.waits)
            ),
        ),
        Mistake(
            "Both ranks receive first, so neither sends. They have to take turns: 0 sends while 1"
            " receives, then the other way round.",
            when=lambda e: bool(
                e.failure
                and set(e.failure.cycle) == {0, 1}
                and all(wait.call == "recv" for wait in e.failure.waits)
            ),
        ),
        Mistake(
            "Rank 1 returns what it sent back. Only rank 0 returns that; all others, rank 1"
            " included, return a copy of their own x.",
            gives=lambda c: [c.x[0] + 1, c.x[0] + 1, *c.x[2:]],
        ),
        Mistake(
            "No message was sent: every rank returns its own x.",
            gives=lambda c: list(c.x),
            when=_silent,
        ),
        Mistake(
            "Nothing was added: rank 1 has to send back what it received plus 1.",
            gives=lambda c: list(c.x),
            when=lambda e: not _silent(e) and not e.written(r"\+\s*=?\s*1|\badd"),
        ),
        Mistake(
            "Rank 0 ends with x as it was. Does rank 1 send what it received plus 1, and does rank"
            " 0 return what comes back?",
            gives=lambda c: list(c.x),
        ),
        Mistake(
            "1 was added twice. Rank 1 adds it, and rank 0 returns what comes back as it is.",
            gives=lambda c: [c.x[0] + 1 + 1, *c.x[1:]],
        ),
        Mistake(
            "Rank 1 sent back its own x plus 1, not what it had received plus 1.",
            gives=lambda c: [c.x[1] + 1, *c.x[1:]],
        ),
        Mistake(
            "Rank 1 returns what it had received; it should return a copy of its own x.",
            gives=lambda c: [c.x[0] + 1, c.x[0], *c.x[2:]],
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
        Mistake(
            "When peer is your own rank there is no other rank to talk to: return a copy of x.",
            when=evidence.to_itself,
        ),
        Mistake(
            "No message was sent: every rank returns its own x.",
            gives=lambda c: list(c.x),
            when=_silent,
        ),
        Mistake(
            "You return your own x: return what you have received.",
            gives=lambda c: list(c.x),
            when=lambda e: any(p != r for r, p in enumerate(e.case.peer)) and not _silent(e),
        ),
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
        Mistake(
            "x is passed on from neighbour to neighbour. One message per rank is enough, straight"
            " to its destination: rank + k.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_MESSAGES
                and e.case.n > 2
                and {(op.peer - op.rank) % e.case.n for op in e.trace.sends()} == {1}
            ),
        ),
        Mistake(
            "The result is all zeros, and no rank's x. After irecv a tensor holds nothing of the"
            " message until wait() has returned: is it read, or copied, before that?",
            gives=lambda c: [torch.zeros_like(t) if c.k % c.n else t for t in c.x],
            when=lambda e: e.calls("irecv"),
        ),
        Mistake(
            "That is a shift by one, whatever k is.",
            gives=(
                lambda c: [c.x[(r - 1) % c.n] for r in c.ranks],
                lambda c: [c.x[(r - (c.k % c.n > 0)) % c.n] for r in c.ranks],
            ),
        ),
        Mistake(
            "When k % n is 0 the other rank is yourself, and a rank cannot send to itself: return a"
            " copy then.",
            when=lambda e: evidence.to_itself(e) and e.case.k % e.case.n == 0,
        ),
        Mistake(
            "That rank does not exist: take (rank + k) and (rank − k) modulo n.",
            when=evidence.no_rank,
        ),
        Mistake(
            "The shift goes the other way: you return the x of rank r + k, not of r − k. Your x"
            " travels to rank + k.",
            gives=lambda c: [c.x[(r + c.k) % c.n] for r in c.ranks],
        ),
        Mistake(
            "No message was sent: every rank returns its own x.",
            gives=lambda c: list(c.x),
            when=_silent,
        ),
        Mistake(
            "You return your own x: return what came from rank r − k.",
            gives=lambda c: list(c.x),
        ),
    ),
)
