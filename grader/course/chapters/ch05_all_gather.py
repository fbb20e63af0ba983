"""Chapter 05: every rank ends with every piece."""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, demo, kinds, nbytes, tags
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Growth, Mistake, TrafficRules, Values
from grader.course.limits import messages, moved, neighbours_only, point, rounds, sent


def _inputs(draw: Draw) -> list[Case]:
    # x with one row as well: a program must not take that row for the whole of x
    shapes = (*kinds(draw.n), Kind(torch.float64, (1, 6)))
    return [draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in shapes]


#: Largest simulated world in which values are compared as well, where every rank holds one
#: tensor from each: n² tensors take longer to make and to look at than to send.
COMPARED = 100


def _on_many_ranks(draw: Draw) -> Case:
    """Draw a case with as little data as shows how the traffic grows."""
    return draw.case("one number a rank", x=draw.per_rank(Kind(torch.int64, (1,))))


#: The rank whose x a mistake puts into an entry, given the rank, the entry and the world size.
Owner = Callable[[int, int, int], int]


def _entries(c: Case, owner: Owner) -> list[list[torch.Tensor]] | None:
    """Return the lists of all ranks if entry j of rank r were the x of ``owner(r, j, n)``."""
    if c.n == 1:
        return None
    return [[c.x[owner(r, j, c.n) % c.n] for j in c.ranks] for r in c.ranks]


def _owners(e: Evidence) -> list[list[int | None]]:
    """Return the rank whose x is in each entry of each rank; ``None`` where it is no rank's x.

    The list is empty if the failure is not about values, or if values do not tell.
    """
    if e.diagnosis is not Diagnosis.WRONG_VALUE or e.case.n == 1 or not e.case.x[0].numel():
        return []
    return [
        [next((s for s, x in enumerate(e.case.x) if torch.equal(x, entry)), None) for entry in held]
        for held in e.actual
    ]


def _wrong_entries(e: Evidence) -> set[tuple[int, int]]:
    """Return rank and index of the entries that hold something else than they should."""
    return {
        (r, j) for r, held in enumerate(_owners(e)) for j, owner in enumerate(held) if owner != j
    }


def _shuffled(e: Evidence) -> bool:
    """Return whether every rank has every piece, but not all in their places."""
    return bool(_owners(e)) and all(set(held) == set(e.case.ranks) for held in _owners(e))


def _own_alone(e: Evidence) -> bool:
    """Return whether every entry of a rank's list is its own x."""
    return bool(_owners(e)) and all(set(held) == {r} for r, held in enumerate(_owners(e)))


def _own_missing(e: Evidence) -> bool:
    return _wrong_entries(e) == {(r, r) for r in e.case.ranks}


def _last_missing(e: Evidence) -> bool:
    """Return whether every rank lacks just the piece that comes in the last round."""
    return _wrong_entries(e) == {(r, (r + 1) % e.case.n) for r in e.case.ranks}


def _all_one(e: Evidence) -> bool:
    """Return whether each rank's entries all look the same."""
    return bool(_owners(e)) and all(
        torch.equal(entry, held[0]) for held in e.actual for entry in held
    )


def _buffers_in_turn(e: Evidence) -> bool:
    """Return whether every rank's list of more than three entries repeats two pieces in turn."""
    n, owners = e.case.n, _owners(e)
    if n < 4:
        return False
    others = [[held[(r - s) % n] for s in range(1, n)] for r, held in enumerate(owners)]
    return bool(others) and all(
        len(set(held)) == 2 and all(held[i] == held[i - 2] for i in range(2, n - 1))
        for held in others
    )


def _one_place_off(e: Evidence) -> bool:
    """Return whether every piece that came lies one place beside its own."""
    n, owners = e.case.n, _owners(e)
    return bool(owners) and any(
        all(
            owner == (j - by) % n
            for r, held in enumerate(owners)
            for j, owner in enumerate(held)
            if j != (r + by) % n
        )
        for by in (1, -1)
    )


def _keeps_sending_own(e: Evidence) -> bool:
    """Return whether every entry except a rank's own is its left neighbour's x."""
    n, owners = e.case.n, _owners(e)
    return bool(owners) and all(
        owner == (r if j == r else (r - 1) % n)
        for r, held in enumerate(owners)
        for j, owner in enumerate(held)
    )


def _past_the_end(e: Evidence) -> bool:
    """Return whether the program named a rank that does not exist, or an entry for it."""
    return evidence.no_rank(e) or e.says("index out of range")


def _on_some_only(e: Evidence) -> bool:
    """Return whether some ranks have the right list and others none."""
    return any(held is None for held in e.actual) and not all(held is None for held in e.actual)


FROM_OWN_ON = (
    "Your list begins with your own x. It is the same list on every rank: entry j is what rank j"
    " had."
)

IN_ORDER_OF_ARRIVAL = Mistake(
    "The list is in the order of arrival. Entry j belongs to rank j: receive from a named rank, or"
    " use what recv returns, which is the rank that the message came from.",
    when=lambda e: e.wildcards and _shuffled(e),
)

OWN_MISSING = Mistake(
    "Your own x is not in your list: no message brings it to you, so copy it into the entry of your"
    " own rank.",
    when=evidence.always(_own_missing),
)

OWN_ALONE = Mistake(
    "Every entry of your list is your own x, but entry j should be what came from rank j.",
    when=lambda e: not e.written(r"\]\s*\*") and evidence.always(_own_alone)(e),
)

ONE_TENSOR = Mistake(
    "All entries of a rank's list hold the same numbers. Are they one and the same tensor, filled"
    " again and again? [buffer] * n is one tensor n times, and so is a buffer that is appended n"
    " times. Make a new tensor for every rank.",
    when=evidence.always(_all_one),
)

TWO_BUFFERS = Mistake(
    "Your list holds two buffers that take turns, or the same ones again and again, so each later"
    " piece has overwritten an earlier one. Keep a copy of each piece, or use a new tensor for it.",
    when=_buffers_in_turn,
)

ITSELF = Mistake(
    "A rank cannot send to itself or receive from itself, and need not: its own piece is there"
    " already. Skip your own rank, and copy that piece with clone().",
    when=evidence.to_itself,
)

POWERS_OF_TWO = Mistake(
    "rank ^ step finds a partner for every rank only if the number of ranks is a power of two. With"
    " 3 ranks, 1 ^ 2 is 3, and there is no rank 3. Send to (rank + step) % n and receive from"
    " (rank − step) % n, which exist for every n.",
    when=lambda e: e.case.n in (3, 5) and _past_the_end(e) and evidence.uses_xor(e),
)

PAST_THE_END = Mistake(
    "That rank does not exist: the ranks are 0 to n − 1, and to the right of the last is rank 0."
    " Take the number modulo the world size, as in (rank + 1) % n.",
    when=evidence.no_rank,
)

NO_SUCH_ENTRY = Mistake(
    "An index is past the end of a list. Entries are counted like ranks, from 0 to n − 1, and on a"
    " ring the count goes round, so take the index modulo n.",
    when=_past_the_end,
)

ALL_SEND = Mistake(
    "All ranks are in a send, so none of them receives: a send returns only when its receive has"
    " been posted. Start with isend, then receive, then wait for the send.",
    when=evidence.all_send,
)

#: Mistakes about who talks to whom, who sends first, and which buffers a message uses.
PARTNERS = (
    ALL_SEND,
    ITSELF,
    POWERS_OF_TWO,
    PAST_THE_END,
    NO_SUCH_ENTRY,
    *evidence.BUFFER_RACES,
)

WITHOUT_OWN = Mistake(
    "Your own x is missing: the list has an entry for every rank, yourself included.",
    when=lambda e: (
        e.diagnosis is Diagnosis.WRONG_SHAPE and all(len(held) == e.case.n - 1 for held in e.actual)
    ),
)

#: Advice that holds for every ring and every exchange of pieces.
SHARED_ADVICE = {
    Diagnosis.UNWAITED_REQUEST: "isend and irecv each return a request. Keep them all, and call"
    " wait() on every one before you return.",
    Diagnosis.BUFFER_RACE: "Between isend or irecv and its wait() a tensor belongs to its message:"
    " do not write to it, and do not receive into it. Receive into another tensor, or wait first.",
    Diagnosis.FORBIDDEN_CALL: "A built-in collective is not allowed here, not even if a helper"
    " function calls it. Build yours from send, recv, isend and irecv; what you have written in"
    " earlier chapters is welcome.",
}

ADVICE = {
    **SHARED_ADVICE,
    Diagnosis.WRONG_TYPE: "Return a list with one tensor for every rank: not one large tensor, and"
    " not on some ranks only.",
    Diagnosis.WRONG_SHAPE: "The list has n entries, and each is shaped like x.",
    Diagnosis.ALIASED: "Your own entry must be a copy: x.clone(). If it is x itself, your list"
    " changes when the caller changes x.",
    Diagnosis.INPUT_CHANGED: "x belongs to the caller. Receive into tensors of your own,"
    " torch.empty_like(x); what you want to overwrite must be a copy, x.clone().",
}

all_gather = Exercise(
    signature="all_gather(x: Tensor) -> list[Tensor]",
    summary="the list of all x in rank order, on every rank",
    inputs=_inputs,
    values=Values(lambda c: [list(c.x)] * c.n),
    traffic=TrafficRules(
        limits=(
            messages("≤", lambda c: c.n * (c.n - 1)),
            point(sent("≤", lambda c: (c.n - 1) * nbytes(c.x[0]))),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        IN_ORDER_OF_ARRIVAL,
        Mistake(
            "Only some ranks have the list. In a gather one rank ends with it, in an all-gather"
            " every rank does.",
            when=_on_some_only,
        ),
        OWN_ALONE,
        ONE_TENSOR,
        TWO_BUFFERS,
        OWN_MISSING,
        Mistake(
            FROM_OWN_ON,
            gives=lambda c: _entries(c, lambda r, j, n: r if j == 0 else j - (j <= r)),
        ),
        Mistake(FROM_OWN_ON, gives=lambda c: _entries(c, lambda r, j, n: r + j)),
        Mistake(FROM_OWN_ON, gives=lambda c: _entries(c, lambda r, j, n: r - j)),
        WITHOUT_OWN,
        *PARTNERS,
    ),
)


ring_all_gather = Exercise(
    signature="ring_all_gather(x: Tensor) -> list[Tensor]",
    summary="the same around the ring: every rank passes on to the right what came from the left",
    inputs=_inputs,
    values=Values(lambda c: [list(c.x)] * c.n),
    traffic=TrafficRules(
        limits=(
            point(neighbours_only()),
            messages("=", lambda c: c.n * (c.n - 1)),
            point(rounds("=", lambda c: c.n - 1)),
            sent("=", lambda c: (c.n - 1) * nbytes(c.x[0])),
        ),
        growth=Growth(_on_many_ranks, values=COMPARED),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        IN_ORDER_OF_ARRIVAL,
        OWN_ALONE,
        ONE_TENSOR,
        TWO_BUFFERS,
        OWN_MISSING,
        Mistake(
            "Your pieces stand in the order in which they came: your own, then your left"
            " neighbour's, and so on. What comes in round s is the piece of rank (rank − s) % n, so"
            " that is the entry to put it into.",
            gives=lambda c: _entries(c, lambda r, j, n: r - j),
        ),
        Mistake(
            "Every piece is one place off. What comes in round s = 1 … n − 1 is the piece of rank"
            " (rank − s) % n; in round 1 it is your left neighbour's. Where does your s begin?",
            when=evidence.always(_one_place_off),
        ),
        Mistake(
            "Your left neighbour's x stands in every place but your own: every rank sent its own x"
            " again and again. From the second round on, send what came in the round before.",
            when=evidence.always(_keeps_sending_own),
        ),
        Mistake(
            "The pieces go round to the left, but you put them where they would belong if they went"
            " to the right. Send to (rank + 1) % n and receive from (rank − 1) % n. (On a ring to"
            " the left, piece (rank + s) % n comes in round s.)",
            gives=lambda c: _entries(c, lambda r, j, n: 2 * r - j),
        ),
        Mistake(
            "The pieces that should have come last are missing: it takes n − 1 rounds until your"
            " right neighbour's piece has come all the way round to you.",
            when=evidence.always(_last_missing),
        ),
        Mistake(
            "No message was sent, so your list lacks the other ranks' pieces. Does your loop run"
            " at all? On n ranks it takes n − 1 rounds.",
            when=lambda e: (
                all(one.trace.traffic.messages == 0 for one in e.failed)
                and e.diagnosis is Diagnosis.WRONG_VALUE
            ),
        ),
        WITHOUT_OWN,
        Mistake(
            "A rank cannot send to itself, and a single rank has no other to send to: n ranks take"
            " n − 1 rounds, so one rank takes none. Is your loop one round too long?",
            when=evidence.to_itself,
        ),
        *PARTNERS,
        Mistake(
            "One round too many: after n − 1 rounds every rank has everything.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.TOO_MANY_MESSAGES, Diagnosis.TOO_MANY_ROUNDS)
                and e.trace.traffic.messages == e.case.n**2
                and e.trace.traffic.bytes == e.case.n**2 * nbytes(e.case.x[0])
            ),
        ),
    ),
)
