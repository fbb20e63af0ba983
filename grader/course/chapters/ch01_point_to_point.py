"""Chapter 01: one rank sends, another receives."""

from collections.abc import Iterator
from itertools import cycle

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, PerRank, demo, kinds, nbytes, tags
from grader.course.chapters import evidence
from grader.course.exercise import Exercise, Mistake
from grader.course.limits import messages, moved, one_each, point, rounds, total_bytes

_SEND_FIRST = Mistake(
    "Every rank that waits is in a send, or in the wait() of one that isend has started; and a send"
    " is complete only when its receive has been posted. Let one side receive first; or start the"
    " send with isend, receive, and only then call wait().",
    when=lambda e: bool(
        e.failure and e.failure.cycle and all(wait.call == "send" for wait in e.failure.waits)
    ),
)

_WAIT = {
    Diagnosis.UNWAITED_REQUEST: "isend and irecv return a request; call its wait() before you"
    " return.",
}


def _pong(c: Case) -> list[torch.Tensor]:
    return [c.x[0] + 1, *c.x[1:]]


ping_pong = Exercise(
    signature="ping_pong(x: Tensor) -> Tensor",
    summary="rank 0 sends x to rank 1, which adds 1 and sends it back",
    inputs=lambda draw: (draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in kinds(draw.n)),
    expected=_pong,
    world_sizes=(2, 3, 4, 5, 8),
    limits=(
        messages("=", lambda c: 2),
        total_bytes("=", lambda c: 2 * nbytes(c.x[0])),
        one_each((0, 1), (1, 0)),
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    hints=(
        "Three kinds of ranks do three different things: 0, 1, and all the others. Which of them"
        " sends first, and which receives first?",
        "Rank 0 sends, then receives. Rank 1 receives, then sends. Both need somewhere to receive"
        " into: y = torch.empty_like(x).",
        "Rank 1 must not add to its own x: it sends y + 1, where y is what it has received. Rank 0"
        " returns what comes back, every other rank x.clone().",
        "This is the whole answer:\n"
        "    rank, y = dist.get_rank(), torch.empty_like(x)\n"
        "    if rank == 0:\n"
        "        dist.send(x, 1)\n"
        "        dist.recv(y, 1)\n"
        "        return y\n"
        "    if rank == 1:\n"
        "        dist.recv(y, 0)\n"
        "        dist.send(y + 1, 0)\n"
        "    return x.clone()",
    ),
    mistakes=(
        Mistake(
            "Ranks 2 and up have no part in this game: they neither send nor receive, and return"
            " x.clone() at once.",
            when=lambda e: bool(e.failure and any(wait.rank > 1 for wait in e.failure.waits)),
        ),
    ),
    advice={
        Diagnosis.DEADLOCK: "Ranks 0 and 1 take turns: 0 sends while 1 receives, then the other"
        " way round. Ranks 2 and up send and receive nothing.",
        Diagnosis.ALIASED: "Return a copy: x.clone() where nothing was received.",
        Diagnosis.INPUT_CHANGED: "x belongs to the caller. Receive into a tensor of your own,"
        " torch.empty_like(x), and add 1 to that.",
        Diagnosis.TOO_FEW_MESSAGES: "Rank 0 could compute x + 1 alone, but here x has to travel:"
        " one message to rank 1, and one back.",
        Diagnosis.WRONG_PEER: "Only ranks 0 and 1 play, however many ranks there are: one message"
        " from rank 0 to rank 1, and one back.",
        **_WAIT,
    },
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
    expected=lambda c: [c.x[c.peer[r]] for r in c.ranks],
    least=moved,
    limits=(
        messages("=", lambda c: sum(c.peer[r] != r for r in c.ranks)),
        point(rounds("≤", lambda c: 1)),
    ),
    demo=lambda n: demo(n, x=tags(n, 1), peer=PerRank(n - 1 - r for r in range(n))),
    hints=(
        "Both ranks of a pair send, and both receive. What happens if both send first?",
        "Either the lower rank sends first and the higher receives first, or both start their send"
        " with isend. One of the two keeps both directions busy at once.",
        "This is the whole answer:\n"
        "    if peer == dist.get_rank():\n"
        "        return x.clone()\n"
        "    y = torch.empty_like(x)\n"
        "    request = dist.isend(x, peer)\n"
        "    dist.recv(y, peer)\n"
        "    request.wait()\n"
        "    return y",
    ),
    mistakes=(
        _SEND_FIRST,
        *evidence.BUFFER_RACES,
    ),
    advice={
        Diagnosis.DEADLOCK: "Every send needs its receive. Go through the lines above: does the"
        " rank that is waited for make that call at all?",
        Diagnosis.TOO_MANY_ROUNDS: "One direction waits for the other. A link carries both at"
        " once: start the send with isend on both sides, then receive.",
        Diagnosis.ALIASED: "A rank that is its own peer returns x.clone(), not x.",
        Diagnosis.INPUT_CHANGED: "Receive into a tensor of your own, torch.empty_like(x): x must"
        " stay as it is.",
        **_WAIT,
    },
)


def _shifts(draw: Draw) -> Iterator[Case]:
    n = draw.n
    for kind, k in zip(kinds(n), (1, -1, 2, n + 2, -(n + 3), 0, n, -2), strict=True):
        yield draw.case(f"{kind} by {k}", x=draw.per_rank(kind), k=k)


shift = Exercise(
    signature="shift(x: Tensor, k: int) -> Tensor",
    summary="the x of rank (r − k) mod n, for any k",
    inputs=_shifts,
    expected=lambda c: [c.x[(r - c.k) % c.n] for r in c.ranks],
    least=moved,
    limits=(
        messages("=", lambda c: c.n if c.k % c.n else 0),
        point(rounds("=", lambda c: 1 if c.k % c.n else 0)),
    ),
    demo=lambda n: demo(n, x=tags(n, 1), k=1),
    hints=(
        "Which rank does your x go to, and which rank does the one that you return come from?",
        "Write down for 4 ranks whom rank 0 and rank 3 send to and receive from, with k = 1, −1, 4"
        " and 5. Every rank does both, and starts its send before it receives.",
        "Send to (rank + k) % n, receive from (rank − k) % n. Every rank does both, so none may"
        " wait for the send to finish before receiving.",
        "This is the whole answer:\n"
        "    rank, n = dist.get_rank(), dist.get_world_size()\n"
        "    if k % n == 0:\n"
        "        return x.clone()  # the other rank is this one\n"
        "    y = torch.empty_like(x)\n"
        "    request = dist.isend(x, (rank + k) % n)\n"
        "    dist.recv(y, (rank - k) % n)\n"
        "    request.wait()\n"
        "    return y",
    ),
    mistakes=(
        _SEND_FIRST,
        *evidence.BUFFER_RACES,
    ),
    advice={
        Diagnosis.DEADLOCK: "Every send needs its receive. Go through the lines above: does the"
        " rank that is waited for make that call at all?",
        Diagnosis.TOO_MANY_ROUNDS: "The messages go one after the other although they could all go"
        " at once: start with isend (or irecv) on every rank, so that all of them travel in the"
        " same round.",
        Diagnosis.TOO_MANY_MESSAGES: "One message per rank is enough, straight to its destination:"
        " rank + k.",
        Diagnosis.ALIASED: "Where nothing is sent, return x.clone(), not x.",
        **_WAIT,
    },
)
