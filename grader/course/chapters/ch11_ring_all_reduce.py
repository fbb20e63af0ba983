"""Chapter 11: every rank's tensors become one, and none sends more than another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    PerRank,
    demo,
    magnitude,
    op_name,
    reduced,
    tags,
)
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Gives, Growth, Mistake
from grader.course.limits import (
    combined,
    messages,
    neighbours_only,
    point,
    rounds,
    sent_elements,
)

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
    yield draw.case("rank r asks for ring_schedule((r + 2) % 5, 5)", rank=asked, world_size=5)
    own = PerRank(draw.ranks)
    yield draw.case(f"rank r asks for ring_schedule(r, {draw.n})", rank=own, world_size=draw.n)


ring_schedule = Exercise(
    signature="ring_schedule(rank: int, world_size: int) -> list[tuple[int, int]]",
    summary="the 2(n − 1) pairs (chunk to send, chunk to receive) of the ring all-reduce",
    inputs=_questions,
    expected=lambda c: _schedules(c, schedule),
    limits=(messages("=", lambda c: 0),),
    hints=(
        "Look at one column of the table of four ranks. How does the chunk that the rank sends"
        " change from one step to the next? And which chunk has it received just before?",
        "Two loops over s = 1 … n − 1. The first adds (rank − s, rank − s − 1), the second"
        " (rank − s + 1, rank − s), everything modulo world_size.",
        "This is the whole answer:\n"
        "    n = world_size\n"
        "    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]\n"
        "    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]\n"
        "    return first + second",
    ),
    mistakes=(
        Mistake(
            "These are the chunks without the modulo: some are negative. Take each one"
            " % world_size; in Python the result is never negative.",
            gives=lambda c: _schedules(
                c,
                lambda r, n: (
                    [(r - s, r - s - 1) for s in range(1, n)]
                    + [(r - s + 1, r - s) for s in range(1, n)]
                ),
            ),
        ),
        Mistake(
            "This schedule would work, but it is of the other convention, in which rank r begins"
            " with chunk r and ends up owning chunk r + 1. Here rank r begins with chunk r − 1, so"
            " that it owns chunk r: let s run from 1, not from 0.",
            gives=lambda c: _schedules(c, lambda r, n: schedule(r, n, 1)),
        ),
        Mistake(
            "The first phase is of one convention and the second of the other: after the first,"
            " rank r owns chunk r, so that is what it sends first in the second.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 0) + phase(r, n, 2)),
        ),
        Mistake(
            "The first phase is of one convention and the second of the other: rank r has to begin"
            " with chunk r − 1 to own chunk r after the first phase. Let s run from 1.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 1) * 2),
        ),
        Mistake(
            "The phases are in the wrong order: the reduce-scatter comes first. Before it there is"
            " nothing complete to gather.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 1) + phase(r, n, 0)),
        ),
        Mistake(
            "The pairs are the other way round: the chunk to send comes first.",
            gives=lambda c: _schedules(c, lambda r, n: [(b, a) for a, b in schedule(r, n)]),
        ),
        Mistake(
            "Only the reduce-scatter is here. After it every rank has one finished chunk; the"
            " all-gather takes n − 1 more steps.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 0)),
        ),
        Mistake(
            "The second phase repeats the first. It begins with the chunk that is finished: rank r"
            " sends chunk r.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 0) * 2),
        ),
        Mistake(
            "Each phase is a step short: range(1, n) has n − 1 numbers, range(1, n - 1) one less.",
            gives=lambda c: _schedules(c, lambda r, n: phase(r, n, 0)[:-1] + phase(r, n, 1)[:-1]),
        ),
        Mistake(
            "The ring turns the other way: what a rank receives comes from its left neighbour, so"
            " the numbers of its chunks go down from step to step.",
            gives=lambda c: _schedules(
                c,
                lambda r, n: (
                    [((r + s) % n, (r + s + 1) % n) for s in range(1, n)]
                    + [((r + s - 1) % n, (r + s) % n) for s in range(1, n)]
                ),
            ),
        ),
        Mistake(
            "This is the schedule of the rank that runs it. Use the arguments rank and world_size,"
            " not dist.get_rank() and dist.get_world_size(): the function is asked about other"
            " rings as well.",
            gives=lambda c: [schedule(r, c.n) for r in c.ranks],
        ),
        Mistake(
            "This is the schedule of the rank that runs it: use the argument rank, not"
            " dist.get_rank().",
            gives=lambda c: [schedule(r, c.world_size) for r in c.ranks],
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "Return a list of pairs of Python ints, such as [(2, 1), (1, 0)].",
        Diagnosis.WRONG_SHAPE: "On a ring of n there are 2(n − 1) steps, n − 1 in each phase, and"
        " each has one pair (chunk to send, chunk to receive). On a ring of one there are none.",
        Diagnosis.WRONG_VALUE: "Check one rule first: what a rank receives in one step, it sends in"
        " the next, through both phases.",
        Diagnosis.TOO_MANY_MESSAGES: "Send nothing: the schedule follows from the arguments.",
    },
)


# The ring, and how it goes wrong. ---------------------------------------------------

Merge = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_MERGE: Mapping[str, Merge] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "PRODUCT": torch.mul,
}


def ring(
    c: Case,
    *,
    first: int = 0,
    second: int = 0,
    short: tuple[int, int] = (0, 0),
    merge: Merge | None = None,
    adds: bool = False,
    back: bool = False,
    divisor: float | None = None,
) -> list[torch.Tensor] | None:
    """Return what a ring all-reduce gives if it goes wrong in the given ways.

    Args:
        c: a case with ``x`` and ``op``.
        first, second: the convention that each phase follows, see :func:`schedule`.
        short: how many steps are missing in each phase; extra ones if negative.
        merge: what the first phase makes of its own chunk and the one that arrives.
        adds: whether the second phase combines as well, instead of replacing.
        back: whether the second phase goes to the left.
        divisor: what the result is divided by; n for AVG if not given.

    Returns:
        What each rank holds; ``None`` if the case cannot tell.
    """
    n, dtype = c.n, c.x[0].dtype
    if n == 1 or (back and (n == 2 or c.x[0].numel() % n)):
        return None
    wide = torch.float64 if dtype.is_floating_point else dtype
    held = [list(x.to(wide).flatten().tensor_split(n)) for x in c.x]
    combine = _MERGE[op_name(c.op)]
    for steps, offset, put, left in (
        (n - 1 - short[0], first, merge or combine, 1),
        (n - 1 - short[1], second + 1, combine if adds else _replace, -1 if back else 1),
    ):
        for s in range(1, steps + 1):
            moving = [held[r][(r - s + offset) % n] for r in c.ranks]
            for r in c.ranks:
                i = (r - s - 1 + offset) % n
                held[r][i] = put(held[r][i], moving[(r - left) % n])
    if divisor is None:
        divisor = n if op_name(c.op) == "AVG" else 1
    whole = [torch.cat(chunks).reshape(x.shape) for chunks, x in zip(held, c.x, strict=True)]
    return [(t if divisor == 1 else t / divisor).to(dtype) for t in whole]


def _replace(mine: torch.Tensor, came: torch.Tensor) -> torch.Tensor:
    return came


def wrong_rings(**wrong: Any) -> tuple[Gives, ...]:
    """Return the results of rings of both conventions that go wrong in this way."""
    return tuple(partial(ring, first=k, second=k, **wrong) for k in (0, 1))


def replacing() -> tuple[Gives, ...]:
    """Return the results of rings that never combine: each chunk is that of one rank."""
    return wrong_rings(merge=_replace)


def mixed() -> tuple[Gives, ...]:
    """Return the results of rings whose second phase begins with an unfinished chunk."""
    pairs = [(a, b) for a in (0, 1) for b in (-2, -1, 0, 1, 2) if a != b]
    return tuple(partial(ring, first=a, second=b) for a, b in pairs)


def divided_in_steps() -> tuple[Gives, ...]:
    """Return the results for AVG of rings that divide after each addition."""

    def divided(c: Case, convention: int, by: int) -> list[torch.Tensor] | None:
        if op_name(c.op) != "AVG":
            return None

        def merge(mine: torch.Tensor, came: torch.Tensor) -> torch.Tensor:
            return (mine + came) / (by or c.n)

        return ring(c, first=convention, second=convention, merge=merge, divisor=1)

    return tuple(partial(divided, convention=k, by=by) for k in (0, 1) for by in (0, 2))


def divided_twice(c: Case) -> list[torch.Tensor] | None:
    """Return the results if an average is divided by n twice."""
    return ring(c, divisor=c.n**2) if op_name(c.op) == "AVG" else None


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def tail_left(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """Return the results if the elements that n does not divide are left as they were.

    With ``divided``, the whole of x is divided for AVG, those elements included.
    """
    whole = c.x[0].numel() // c.n * c.n
    total, kept = reduced(c.op, c.x).flatten(), untouched(c, divided)
    return [torch.cat([total[:whole], x.flatten()[whole:]]).reshape(x.shape) for x in kept]


def untouched(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """Return x as it was, perhaps divided for AVG."""
    return [x / c.n if divided and op_name(c.op) == "AVG" else x for x in c.x]


def everywhere(c: Case, op: str, *asked: str) -> list[torch.Tensor] | None:
    """Return the results if ``op`` were computed where one of ``asked`` is asked for."""
    return [reduced(OPS[op], c.x)] * c.n if op_name(c.op) in asked else None


# What an answer shows. --------------------------------------------------------------


def steps_missing(e: Evidence) -> int:
    """Return by how many steps the messages fall short of a ring's 2(n − 1)."""
    return int(2 * (e.case.n - 1) - e.trace.traffic.messages / e.case.n)


def chain_breaks(e: Evidence) -> bool | None:
    """Return whether rank 0 begins its second phase with a chunk other than the last one received.

    The result is ``None`` if the places in memory that it sends from do not tell.
    """
    n = e.case.n
    size = e.case.x[0].numel() // n
    places = [m.taken_from for m in e.trace.messages if m.source == 0]
    if not size or len(places) < n or len(set(places)) < max(2, n - 1):
        return None
    last, following = places[n - 2] // size, places[n - 1] // size
    return bool((last - following) % n != 1)


def raised(e: Evidence, *words: str) -> bool:
    """Return whether a rank's exception has one of these words in its message."""
    if e.diagnosis is not Diagnosis.EXCEPTION or e.failure is None:
        return False
    return any(word in text for word in words for text in (e.failure.message, *e.failure.detail))


def pairs_exchange(e: Evidence) -> bool:
    """Return whether a wrong program swaps messages between pairs of ranks, as no ring does."""
    if e.diagnosis not in (Diagnosis.WRONG_VALUE, Diagnosis.EXCEPTION, Diagnosis.DEADLOCK):
        return False
    n = e.case.n
    talk = {(op.rank, op.peer) for op in e.trace.sends()}
    ways = {frozenset((b - a) % n for a, b in talk if a == rank) for rank in e.case.ranks}
    return n > 2 and len(ways) > 1 and any((b, a) in talk for a, b in talk)


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


# The ring all-reduce. ---------------------------------------------------------------


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
        ("AVG", Kind(torch.float64, (1000,))),
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
    result="x",
    # on two ranks left and right are one, and many mistakes look alike
    world_sizes=(1, 3, 2, 4, 5, 8),
    expected=lambda c: [reduced(c.op, c.x)] * c.n,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    same_bits=True,
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
    points=3,
    demo=lambda n: demo(n, x=tags(n, n), op=OPS["SUM"]),
    hints=(
        "ring_schedule says which chunk to send and which to receive in each of the 2(n − 1)"
        " steps. What do you do with a chunk that comes in one of the first n − 1 steps, and what"
        " with one that comes later?",
        "Cut x into n chunks that are views of it, and do what ring_schedule says: in the first"
        " n − 1 steps combine what comes with your chunk, in the others let it replace yours.",
        "chunks = x.view(-1).tensor_split(n). In each step: request = dist.isend(chunks[send],"
        " right); dist.recv(buffer, left), with a buffer like chunks[receive]; request.wait();"
        " then combine the buffer into chunks[receive] or copy it there. For AVG divide at the"
        " very end.",
        "for step, (out, into) in enumerate(ring_schedule(rank, n)): … and combine while"
        " step < n - 1: torch.minimum(c, buffer, out=c) for MIN, torch.maximum for MAX,"
        " c.mul_(buffer) for PRODUCT, c.add_(buffer) for SUM and AVG; afterwards c.copy_(buffer)."
        " Here c is chunks[into].",
        "This is the whole answer, with your own ring_schedule:\n"
        "    rank, n, R = dist.get_rank(), dist.get_world_size(), dist.ReduceOp\n"
        "    left, right = (rank - 1) % n, (rank + 1) % n\n"
        "    chunks = x.view(-1).tensor_split(n)\n"
        "    for step, (out, into) in enumerate(ring_schedule(rank, n)):\n"
        "        c = chunks[into]\n"
        "        buffer = torch.empty_like(c)\n"
        "        request = dist.isend(chunks[out], right)\n"
        "        dist.recv(buffer, left)\n"
        "        request.wait()\n"
        "        if step >= n - 1:\n"
        "            c.copy_(buffer)\n"
        "        elif op == R.MIN:\n"
        "            torch.minimum(c, buffer, out=c)\n"
        "        elif op == R.MAX:\n"
        "            torch.maximum(c, buffer, out=c)\n"
        "        elif op == R.PRODUCT:\n"
        "            c.mul_(buffer)\n"
        "        else:\n"
        "            c.add_(buffer)\n"
        "    if op == R.AVG:\n"
        "        x /= n",
    ),
    mistakes=(
        Mistake(
            "Ranks swap with partners, and one has none: rank ^ step works only if the number of"
            " ranks is a power of two. A ring works for every number: send to (rank + 1) % n,"
            " receive from (rank - 1) % n.",
            when=lambda e: pairs_exchange(e) and evidence.uses_xor(e),
        ),
        Mistake(
            "x is as it was, although messages were exchanged. Is the result in another tensor?"
            " `x = x + y`, clone() and cat() make new ones. Write into x in the end:"
            " x.copy_(result).",
            gives=(untouched, partial(untouched, divided=True)),
            when=lambda e: e.trace.traffic.messages > 0,
        ),
        Mistake(
            "x is as it was, and nothing was sent. Does your loop run at all? On n ranks each"
            " phase has n − 1 steps.",
            gives=(untouched, partial(untouched, divided=True)),
        ),
        Mistake(
            "The all-gather combines as well. In the second phase a chunk that comes is finished:"
            " it replaces what is there.",
            gives=wrong_rings(adds=True),
            when=lambda e: steps_missing(e) == 0,
        ),
        Mistake(
            "A step is missing in the reduce-scatter: n − 1 steps, so range(n - 1) or range(1, n).",
            gives=wrong_rings(short=(1, 0)),
            when=lambda e: steps_missing(e) == 1,
        ),
        Mistake(
            "A step is missing in the all-gather: n − 1 steps, so range(n - 1) or range(1, n).",
            gives=wrong_rings(short=(0, 1)),
            when=lambda e: steps_missing(e) == 1,
        ),
        Mistake(
            "A step is missing in both phases: n − 1 steps each, so range(n - 1) or range(1, n).",
            gives=wrong_rings(short=(1, 1)),
            when=lambda e: steps_missing(e) == 2,
        ),
        Mistake(
            "What comes replaces your own part in the first phase, so your own is missing from the"
            " result: in the reduce-scatter, combine what comes with what is there.",
            gives=replacing(),
            when=lambda e: chain_breaks(e) is False,
        ),
        Mistake(
            "Each chunk of the result is that of one rank alone. Either what comes replaces your"
            " own part in the reduce-scatter, where both should be combined; or the all-gather"
            " does not begin with the chunk that came last, which is the finished one.",
            gives=replacing(),
            when=lambda e: chain_breaks(e) is None,
        ),
        Mistake(
            "In the all-gather you send to the left neighbour. Both phases go round the same way:"
            " send to (rank + 1) % n, receive from (rank - 1) % n.",
            gives=wrong_rings(back=True),
            when=lambda e: steps_missing(e) == 0,
        ),
        Mistake(
            "The all-gather begins with a chunk that is not finished: an index is off by one. If"
            " rank r sends chunk r − 1 first, it owns chunk r after the reduce-scatter; if it"
            " sends chunk r first, it owns chunk r + 1. The owned chunk is the one to send next.",
            gives=mixed(),
        ),
        Mistake(
            "The last elements are not reduced: the length is not divisible by n, and chunks of"
            " len // n elements leave some over. x.view(-1).tensor_split(n) leaves none.",
            gives=(tail_left, partial(tail_left, divided=True)),
        ),
        Mistake(
            "AVG is the sum divided by the number of ranks; the division is missing.",
            gives=lambda c: everywhere(c, "SUM", "AVG"),
        ),
        Mistake(
            "The average is divided by n twice: perhaps once by the owner of each chunk, and once"
            " more when everything has been gathered. Do one of the two.",
            gives=divided_twice,
        ),
        Mistake(
            "The division happens in every step, so early terms are divided again and again: add"
            " everything up first, divide once.",
            gives=divided_in_steps(),
        ),
        Mistake(
            "You sum, whatever op says: compare op with dist.ReduceOp.MIN and the others.",
            gives=lambda c: everywhere(c, "SUM", "MIN", "MAX", "PRODUCT"),
        ),
        Mistake(
            "MIN and MAX are swapped.",
            gives=lambda c: everywhere(c, "MAX", "MIN") or everywhere(c, "MIN", "MAX"),
        ),
        Mistake(
            "chunk(n) may give fewer than n pieces, and here it did: use tensor_split(n), which"
            " always gives n, some of them empty if it must be.",
            when=lambda e: (
                raised(e, "IndexError")
                and bool(length(e.case) % e.case.n)
                and e.written(r"\bchunk\(")
            ),
        ),
        Mistake(
            "An index is past the end. Is it the number of a chunk? Chunks are numbered 0 to n − 1:"
            " take it modulo n.",
            when=lambda e: raised(e, "IndexError"),
        ),
        Mistake(
            "The length need not be divisible by n, so x cannot always be cut into n equal rows:"
            " use x.view(-1).tensor_split(n).",
            when=lambda e: raised(e, "invalid for input of size", "equal split"),
        ),
        Mistake(
            "To the right of the last rank is rank 0, and to the left of rank 0 is the last: take"
            " both neighbours modulo n.",
            when=lambda e: raised(e, "there is no rank"),
        ),
        Mistake(
            "Divide only if op is AVG, which is only asked for on floating-point numbers.",
            when=lambda e: raised(e, "can't be cast"),
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
            "x has rows and columns here, and your chunks are rows: two rows cannot be shared out"
            " evenly among more ranks. Cut elements: x.view(-1).tensor_split(n).",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and e.case.x[0].dim() == 2,
        ),
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
    advice={
        Diagnosis.WRONG_TYPE: "ring_all_reduce works in place, on x, and returns nothing.",
        Diagnosis.WRONG_VALUE: "Take three ranks and six numbers, print your chunks after every"
        " step, and compare them with the three ranks by hand in the chapter.",
        Diagnosis.DEADLOCK: "Go through the lines above: does the neighbour that a rank waits for"
        " ever make that call? In both phases send to (rank + 1) % n with isend, and receive from"
        " (rank - 1) % n.",
        Diagnosis.SIZE_MISMATCH: "Both ends of a step must mean the same chunk: what you send is"
        " what your right neighbour receives. Is its buffer like chunks[receive]?",
        Diagnosis.TOO_MANY_BYTES: "Each rank sends 2(n − 1) messages of one chunk, 1/n of x."
        " Are whole tensors sent on this many ranks, or is there a step too many?",
        Diagnosis.TOO_FEW_BYTES: "Every rank has to send 2(n − 1) chunks of about len/n elements.",
        Diagnosis.TOO_MANY_ROUNDS: "In every step all ranks send and receive at the same time."
        " If some ranks send while others receive, links are idle: start the send with isend, then"
        " recv, then wait.",
        Diagnosis.TOO_FEW_ROUNDS: "The ring takes n − 1 steps to sum the chunks and n − 1 to hand"
        " them out.",
        Diagnosis.NOT_NEIGHBOUR: "A message goes to a rank that is not next to the sender. Let a"
        " chunk travel from neighbour to neighbour, and combine it on its way.",
        Diagnosis.NONDETERMINISTIC: "Rounding depends on the order of additions. Let each chunk be"
        " summed once, by the chain of ranks that it passes through, and let the others copy the"
        " finished sum.",
        Diagnosis.BUFFER_RACE: "A chunk that isend is sending may not be written to before its"
        " wait(), and a buffer that irecv is filling may not be read: wait for both requests at"
        " the end of every step.",
        Diagnosis.UNWAITED_REQUEST: "A step has a send and a receive: wait for both before the next"
        " one begins.",
    },
)
