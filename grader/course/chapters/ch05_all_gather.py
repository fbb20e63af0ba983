"""Chapter 05: every rank ends with every piece."""

from __future__ import annotations

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind, demo, kinds, nbytes, tags
from grader.exercise.declaration import Evidence, Exercise, Growth, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, moved, neighbours_only, point, rounds, sent
from grader.exercise.verdict import Grade
from headcount.core.verdict import Diagnosis


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


def _owners(e: Evidence) -> list[list[int | None]]:
    """Return the rank whose x is in each entry of each rank; ``None`` where it is no rank's x.

    The list is empty if the failure is not about values, or if values do not tell.
    """
    if e.diagnosis is not Diagnosis.WRONG_VALUE or e.case.n == 1 or not e.case.x[0].numel():
        return []
    return [
        [
            next((s for s, x in enumerate(e.case.x) if evidence.same(x, entry)), None)
            for entry in held
        ]
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


def _own_missing(e: Evidence) -> bool:
    return _wrong_entries(e) == {(r, r) for r in e.case.ranks}


#: Whether no rank keeps its own x; what was never filled may hold another by chance.
_own_lost = evidence.always(lambda e: not any(held[r] == r for r, held in enumerate(_owners(e))))


def _last_missing(e: Evidence) -> bool:
    """Return whether every rank lacks just the piece that comes in the last round."""
    return _wrong_entries(e) == {(r, (r + 1) % e.case.n) for r in e.case.ranks}


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


def _on_some_only(e: Evidence) -> bool:
    """Return whether some ranks have the right list and others none."""
    return any(held is None for held in e.actual) and not all(held is None for held in e.actual)


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

ONE_TENSOR = Mistake(
    "All entries of a rank's list hold the same numbers. Are they one and the same tensor, filled"
    " again and again? [buffer] * n is one tensor n times, and so is a buffer that is appended n"
    " times. Make a new tensor for every rank.",
    when=evidence.always(
        lambda e: all(
            isinstance(held, (list, tuple))
            and len(held) > 1
            and bool(torch.as_tensor(held[0]).any())  # what is empty was never filled
            and all(isinstance(t, torch.Tensor) and evidence.same(t, held[0]) for t in held)
            for held in e.actual
        )
    ),
)

NO_SUCH_ENTRY = Mistake(
    "An index is past the end of a list. Entries are counted like ranks, from 0 to n − 1, and on a"
    " ring the count goes round, so take the index modulo n.",
    when=lambda e: e.raised("IndexError"),
)

ALL_SEND = Mistake(
    "All ranks are in a send, or in the wait() of one that isend has started, so none of them"
    " receives: a send is complete only when its receive has been posted. Start with isend, then"
    " receive, then wait for the send.",
    when=evidence.all_send,
    grade=Grade.ESTABLISHED,
)

#: Mistakes about who sends first and to whom, which buffers a message uses, and how entries count.
PARTNERS = (ALL_SEND, NO_SUCH_ENTRY, *evidence.BUFFER_RACES, evidence.XOR)

IN_OTHER_PLACES = Mistake(
    "Every rank has all n pieces, but not all in their places. Entry j of the list is for what rank"
    " j had: into which entry does each message go?",
    when=evidence.always(_shuffled),
)

WITHOUT_OWN = Mistake(
    "Your own x is missing: the list has an entry for every rank, yourself included.",
    when=lambda e: (
        e.diagnosis is Diagnosis.WRONG_SHAPE and all(len(held) == e.case.n - 1 for held in e.actual)
    ),
)

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
        ONE_TENSOR,
        OWN_MISSING,
        IN_OTHER_PLACES,
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
        ONE_TENSOR,
        OWN_MISSING,
        Mistake(
            "Every piece is one place off. What comes in round s = 1 … n − 1 is the piece of rank"
            " (rank − s) % n; in round 1 it is your left neighbour's. Where does your s begin?",
            when=evidence.always(_one_place_off),
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
        Mistake(
            "No rank's x is in any of the lists: does what goes round hold an x at all? In round"
            " s = 0, 1, … send entry rank − s, in round 0 your own, into which x has to be copied"
            " before. What comes is entry rank − s − 1, which you send in the next round.",
            when=lambda e: {o for held in _owners(e) for o in held} == {None} and _own_lost(e),
        ),
        IN_OTHER_PLACES,
        WITHOUT_OWN,
        *PARTNERS,
    ),
)
