"""Chapter 08: every rank has a piece for every other rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.course.chapters import evidence
from grader.course.chapters.ch05_all_gather import ALL_SEND, ONE_TENSOR
from grader.exercise.cases import Case, Draw, Kind, PerRank, demo, kinds, nbytes, tag_lists
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, moved, point, rounds, total_bytes
from headcount.core.values import dtype_name
from headcount.core.verdict import Diagnosis


def _in_order_of_arrival(expected: Callable[[Case], Sequence[Any]]) -> Callable[[Evidence], bool]:
    """Make a test of whether ranks received from any rank, and hold what they should, shuffled."""

    def numbers(held: Any) -> torch.Tensor:
        pieces = [held] if isinstance(held, torch.Tensor) else held
        return torch.cat([piece.flatten() for piece in pieces]).sort().values

    def seen(e: Evidence) -> bool:
        pairs = zip(e.actual, expected(e.case), strict=True)
        return e.wildcards and all(evidence.same(numbers(a), numbers(b)) for a, b in pairs)

    return seen


def _transposed(c: Case) -> list[list[torch.Tensor]]:
    return [[c.chunks[j][r] for j in c.ranks] for r in c.ranks]


def _only_own_entry_is_wrong(e: Evidence) -> bool:
    """Return whether ranks have what others sent, and lack only their own piece."""
    return all(
        isinstance(entry, torch.Tensor) and evidence.same(entry, e.case.chunks[j][r])
        for r, entries in enumerate(e.actual)
        for j, entry in enumerate(entries)
        if j != r
    )


def _one_at_a_time(e: Evidence) -> bool:
    """Return whether no two messages travel in one round, in a world where some could."""
    traffic = max(e.failed, key=lambda one: one.case.n).trace.traffic
    return e.diagnosis is Diagnosis.TOO_MANY_ROUNDS and traffic.rounds == traffic.messages > 2


all_to_all = Exercise(
    signature="all_to_all(chunks: list[Tensor]) -> list[Tensor]",
    summary="entry j of the result is rank j's chunks[rank]",
    inputs=lambda draw: (draw.case(str(kind), chunks=draw.chunks(kind)) for kind in kinds(draw.n)),
    values=Values(_transposed),
    traffic=TrafficRules(
        limits=(
            # first, since what passes chunks on may do so in fewer messages and rounds
            point(total_bytes("≤", lambda c: c.n * (c.n - 1) * nbytes(c.chunks[0][0]))),
            messages("=", lambda c: c.n * (c.n - 1)),
            point(rounds("=", lambda c: c.n - 1)),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, chunks=tag_lists(n)),
    mistakes=(
        Mistake(
            "Everything passes through one rank, which receives and sends one message at a time."
            " Send each chunk straight to the rank that needs it, and let the peers rotate: in step"
            " s send to (rank + s) % n and receive from (rank − s) % n.",
            when=lambda e: (
                e.diagnosis
                in (
                    Diagnosis.TOO_MANY_BYTES,
                    Diagnosis.TOO_MANY_ROUNDS,
                    Diagnosis.TOO_MANY_MESSAGES,
                    Diagnosis.TOO_FEW_MESSAGES,
                )
                and evidence.common_end(e) is not None
            ),
        ),
        Mistake(
            "Chunks travel together, and ranks pass them on: fewer messages and rounds, and more"
            " bytes, as in Bruck's algorithm. Here each chunk travels once: send it straight to the"
            " rank that needs it.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and e.trace.traffic.messages < e.case.n * (e.case.n - 1)
            ),
        ),
        Mistake(
            "Only one message travels at a time: one rank sends after another, and the rest wait."
            " Let the peers rotate: in step s send to (rank + s) % n with isend, and receive from"
            " (rank − s) % n.",
            when=_one_at_a_time,
        ),
        *evidence.BUFFER_RACES,
        Mistake(
            "The list is in the order of arrival. Receive from a named rank src, into place src. (A"
            " receive from any rank returns the rank that the message came from.)",
            when=evidence.always(_in_order_of_arrival(_transposed)),
        ),
        ONE_TENSOR,
        Mistake(
            "Only your own entry is wrong: no message brings it, so copy chunks[rank] into the"
            " place of your own rank.",
            when=evidence.always(_only_own_entry_is_wrong),
        ),
        ALL_SEND,
        evidence.XOR,
    ),
)


# all_to_all_uneven


def _ragged(n: int, i: int, j: int) -> int:
    return (2 * i + 3 * j + 1) % 5


#: How many rows rank i of n has for rank j.
PATTERNS: dict[str, Callable[[int, int, int], int]] = {
    "ragged": _ragged,
    "all to the last rank": lambda n, i, j: i + 3 if j == n - 1 else 0,
    "all to the right": lambda n, i, j: 7 if j == (i + 1) % n else 0,
    "only the last rank has rows": lambda n, i, j: j + 1 if i == n - 1 else 0,
    "all stay": lambda n, i, j: i + 2 if i == j else 0,
    "even": lambda n, i, j: n,
    "no rows": lambda n, i, j: 0,
    "one long piece each": lambda n, i, j: 1000 if j == (i - 1) % n else 1,
}

#: A pattern of counts, and the dtype and shape of a row.
UNEVEN = (
    ("ragged", Kind(torch.float32, (3,))),
    ("ragged", Kind(torch.bfloat16, ())),
    ("all to the last rank", Kind(torch.int64, (2,))),
    ("all to the right", Kind(torch.float64, ())),
    ("only the last rank has rows", Kind(torch.float32, (5,))),
    ("all stay", Kind(torch.float32, ())),
    ("even", Kind(torch.int64, ())),
    ("no rows", Kind(torch.float32, (4,))),
    ("ragged", Kind(torch.float32, (0,))),
    ("one long piece each", Kind(torch.float64, (3,), special=True)),
)


def _uneven(draw: Draw) -> Iterator[Case]:
    for pattern, row in UNEVEN:
        counts = PerRank([PATTERNS[pattern](draw.n, i, j) for j in draw.ranks] for i in draw.ranks)
        rows = draw.per_rank([replace(row, shape=(sum(c), *row.shape)) for c in counts])
        of = (
            f"rows of {row}"
            if row.shape
            else f"rows that are single {dtype_name(row.dtype)} numbers"
        )
        yield draw.case(f"{pattern}, {of}", rows=rows, counts=counts)


def _pieces(c: Case) -> list[Sequence[torch.Tensor]]:
    return [rows.split(counts) for rows, counts in zip(c.rows, c.counts, strict=True)]


def _arrived(c: Case) -> list[torch.Tensor]:
    pieces = _pieces(c)
    return [torch.cat([pieces[j][r] for j in c.ranks]) for r in c.ranks]


def _moved(c: Case) -> int:
    """Return the bytes of the rows that change rank."""
    pieces = _pieces(c)
    return sum(nbytes(pieces[i][j]) for i in c.ranks for j in c.ranks if i != j)


def _empty_message_alone(e: Evidence) -> bool:
    """Return whether a rank waits in one end of an empty message that has no other end."""
    stuck = e.diagnosis is Diagnosis.DEADLOCK
    lost = (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)
    return e.diagnosis in lost and any(
        op.is_message and op.count == 0 and not op.matched and (op.blocked or not stuck)
        for operations in e.trace.operations
        for op in operations
    )


all_to_all_uneven = Exercise(
    signature="all_to_all_uneven(rows: Tensor, counts: list[int]) -> Tensor",
    summary="the first counts[0] rows go to rank 0, the next to rank 1, …; returns what arrives",
    inputs=_uneven,
    values=Values(_arrived),
    traffic=TrafficRules(
        limits=(
            total_bytes("≥", _moved),
            total_bytes("≤", lambda c: _moved(c) + c.n * (c.n - 1) * 8 * c.n),
        ),
        least=moved,
    ),
    mistakes=(
        *evidence.BUFFER_RACES,
        Mistake(
            "One rank leaves out the message because there are no rows, and the other waits for it."
            " Either both leave it out, or an empty message is sent and received like any other.",
            when=_empty_message_alone,
        ),
        Mistake(
            "The rows are in the order of arrival. They belong in rank order: keep a list with a"
            " place for every rank, and join it at the end.",
            when=evidence.always(_in_order_of_arrival(_arrived)),
        ),
        ALL_SEND,
        evidence.XOR,
    ),
)
