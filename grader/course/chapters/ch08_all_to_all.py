"""Chapter 08: every rank has a piece for every other rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from grader.core.values import dtype_name
from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank, demo, kinds, nbytes, tag_lists
from grader.course.chapters import evidence
from grader.course.chapters.ch05_all_gather import ALL_SEND
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import messages, moved, point, rounds, total_bytes
from grader.trace.trace import Operation

# Evidence of mistakes with messages of different sizes, read from the traffic. ----
#
# The cases have ``rows``, a tensor for each rank, and ``counts``, how many of
# them go to each rank.


def _row_messages(e: Evidence, kind: str) -> list[Operation]:
    """Return the messages of rows and not of counts, where dtypes tell them apart."""
    dtype = dtype_name(e.case.rows[0].dtype)
    ends = [op for ops in e.trace.operations for op in ops if op.kind == kind]
    return [op for op in ends if op.dtype == dtype and dtype != "int64"]


def _row_size(c: Case) -> int:
    return int(torch.Size(c.rows[0].shape[1:]).numel())


def receives_own_counts(e: Evidence) -> bool:
    """Return whether ranks expect from each rank as many rows as they send to it."""
    receives, size = _row_messages(e, "recv"), _row_size(e.case)
    if e.diagnosis not in (Diagnosis.SIZE_MISMATCH, Diagnosis.DEADLOCK) or not receives:
        return False
    return all(op.count == e.case.counts[op.rank][op.peer] * size for op in receives)


def even_shares(e: Evidence) -> bool:
    """Return whether every rank sends equal shares of its rows, whatever the counts say."""
    sends, c = _row_messages(e, "send"), e.case
    shares = {r: len(c.rows[r]) / c.n for r in c.ranks}
    uneven = any(op.count != c.counts[op.rank][op.peer] * _row_size(c) for op in sends)
    return uneven and all(
        abs(op.count - shares[op.rank] * _row_size(c)) < _row_size(c) for op in sends
    )


def forgets_the_row_shape(e: Evidence) -> bool:
    """Return whether a buffer for k rows has k elements."""
    receives, c = _row_messages(e, "recv"), e.case
    return (
        e.diagnosis is Diagnosis.SIZE_MISMATCH
        and _row_size(c) > 1
        and bool(receives)
        and all(op.count == c.counts[op.peer][op.rank] for op in receives)
    )


def empty_message_alone(e: Evidence) -> bool:
    """Return whether a rank waits in one end of an empty message that has no other end."""
    stuck = e.diagnosis is Diagnosis.DEADLOCK
    lost = (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)
    return e.diagnosis in lost and any(
        op.is_message and op.count == 0 and not op.matched and (op.blocked or not stuck)
        for operations in e.trace.operations
        for op in operations
    )


def sends_everything(e: Evidence) -> bool:
    """Return whether every rank sends all of its rows to every other one."""
    c = e.case
    sends = [op for op in _row_messages(e, "send") if op.count > c.n]
    everything = bool(sends) and all(op.count >= c.rows[op.rank].numel() for op in sends)
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and everything


# Equal pieces. --------------------------------------------------------------------

COPY = "The result shares memory with the input. What stays on its rank is copied: .clone()."


def _is_one_tensor(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) > 1
        and all(isinstance(t, torch.Tensor) and torch.equal(t, value[0]) for t in value)
    )


# all_to_all


def _transposed(c: Case) -> list[list[torch.Tensor]]:
    return [[c.chunks[j][r] for j in c.ranks] for r in c.ranks]


def _only_own_entry_is_wrong(e: Evidence) -> bool:
    """Return whether ranks have what others sent, and lack only their own piece."""
    return all(
        isinstance(entry, torch.Tensor) and torch.equal(entry, e.case.chunks[j][r])
        for r, entries in enumerate(e.actual)
        for j, entry in enumerate(entries)
        if j != r
    )


def _pairs_by_xor(e: Evidence) -> bool:
    """Return whether partners are rank XOR step, and n is not a power of two."""
    n = e.case.n
    sends = {(op.rank, op.peer) for op in e.trace.sends()}
    partners = {(r, r ^ step) for r in range(n) for step in range(1, n)}
    return n & (n - 1) != 0 and bool(sends) and sends <= partners and evidence.uses_xor(e)


def _shuffled(e: Evidence) -> bool:
    """Return whether every rank has the chunks meant for it, but not all in their places."""
    return e.diagnosis is Diagnosis.WRONG_VALUE and all(
        any(torch.equal(e.case.chunks[j][r], entry) for entry in entries)
        for r, entries in enumerate(e.actual)
        for j in e.case.ranks
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
            "A rank cannot send to itself or receive from itself: that is an error. Copy"
            " chunks[rank].",
            when=evidence.to_itself,
        ),
        Mistake(
            "rank XOR step pairs every rank with every other one only if n is a power of two. With"
            " 3 ranks, 1 XOR 2 is 3, which does not exist, and ranks 1 and 2 never meet. Rotate:"
            " send to (rank + step) % n, receive from (rank − step) % n.",
            when=lambda e: e.diagnosis is not Diagnosis.TOO_MANY_ROUNDS and _pairs_by_xor(e),
        ),
        Mistake(
            "Ranks meet in pairs, and if their number is odd, one is always idle. Let the peers"
            " rotate: in step s send to (rank + s) % n and receive from (rank − s) % n.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_ROUNDS
                and e.case.n & 1 == 1
                and evidence.uses_xor(e)
            ),
        ),
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
            when=lambda e: e.wildcards and _shuffled(e),
        ),
        Mistake(
            "The list is in the order of your steps: your own chunk, then the left neighbour's, and"
            " so on. Entry j belongs to rank j: put what comes from src into place src.",
            gives=lambda c: [[c.chunks[(r - s) % c.n][r] for s in c.ranks] for r in c.ranks],
        ),
        Mistake(
            "Your own chunk comes first, and the others follow. Entry j belongs to rank j.",
            gives=lambda c: [
                [c.chunks[j][r] for j in sorted(c.ranks, key=lambda j: (j != r, j))]
                for r in c.ranks
            ],
        ),
        Mistake(
            "Every rank sends its chunks[rank] to all the others. That is the one to keep; what is"
            " meant for rank dst is chunks[dst].",
            gives=lambda c: [[c.chunks[j][j] for j in c.ranks] for _ in c.ranks],
        ),
        Mistake(
            "Every rank ends with its own chunks. Entry j of the result must come from rank j.",
            gives=lambda c: list(c.chunks),
        ),
        Mistake(
            "Your own chunk is missing from the list. It does not travel, but it belongs to the"
            " result: put a copy into the place of your own rank.",
            gives=lambda c: [[c.chunks[j][r] for j in c.ranks if j != r] for r in c.ranks],
        ),
        Mistake(
            "All entries of a rank's list hold the same numbers. Are they one and the same tensor,"
            " filled again and again? [buffer] * n is one tensor n times: make a new one for every"
            " rank.",
            when=evidence.always(lambda e: all(_is_one_tensor(value) for value in e.actual)),
        ),
        Mistake(
            "Only your own entry is wrong: no message brings it, so copy chunks[rank] into the"
            " place of your own rank.",
            when=evidence.always(_only_own_entry_is_wrong),
        ),
        ALL_SEND,
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
    "one long": lambda n, i, j: 1000 if j == (i - 1) % n else 1,
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
    ("one long", Kind(torch.float64, (3,))),
)


def _uneven(draw: Draw) -> Iterator[Case]:
    for pattern, row in UNEVEN:
        counts = PerRank([PATTERNS[pattern](draw.n, i, j) for j in draw.ranks] for i in draw.ranks)
        rows = draw.per_rank([Kind(row.dtype, (sum(c), *row.shape)) for c in counts])
        yield draw.case(f"{pattern}, rows of {row}", rows=rows, counts=counts)


def _pieces(c: Case) -> list[Sequence[torch.Tensor]]:
    return [rows.split(counts) for rows, counts in zip(c.rows, c.counts, strict=True)]


def _arrived(c: Case, order: Callable[[int], Sequence[int]] | None = None) -> list[torch.Tensor]:
    """Return what each rank ends with if it puts the ranks' pieces in this order."""
    pieces = _pieces(c)
    return [
        torch.cat([c.rows[r][:0], *(pieces[j][r] for j in (order(r) if order else c.ranks))])
        for r in c.ranks
    ]


def _moved(c: Case) -> int:
    """Return the bytes of the rows that change rank."""
    pieces = _pieces(c)
    return sum(nbytes(pieces[i][j]) for i in c.ranks for j in c.ranks if i != j)


def _own_count_skipped(c: Case) -> list[torch.Tensor]:
    """Return the results if the offset does not move past a rank's own rows."""

    def piece(i: int, j: int) -> Any:
        start = sum(c.counts[i][:j]) - (c.counts[i][i] if i < j else 0)
        return c.rows[i][start : start + c.counts[i][j]]

    return [torch.cat([piece(j, r) for j in c.ranks]) for r in c.ranks]


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
            "A rank cannot send to itself or receive from itself: that is an error. Copy your own"
            " rows.",
            when=evidence.to_itself,
        ),
        Mistake(
            "One rank leaves out the message because there are no rows, and the other waits for it."
            " Either both leave it out, or an empty message is sent and received like any other.",
            when=empty_message_alone,
        ),
        Mistake(
            "Room for k elements is not enough for k rows: a row may have many elements. Use"
            " rows.new_empty((k, *rows.shape[1:])).",
            when=forgets_the_row_shape,
        ),
        Mistake(
            "counts says how many rows you send to each rank, not how many each rank sends to you."
            " Only the sender knows that number, so exchange the counts first.",
            when=receives_own_counts,
        ),
        Mistake(
            "Every rank sends equal shares of its rows, but counts[dst] says how many go to rank"
            " dst: rows.split(counts) cuts them.",
            when=even_shares,
        ),
        Mistake(
            "The counts do not have the same dtype at both ends. torch.tensor([3]) is int64 and"
            " torch.empty(1) is float32: give both ends the same dtype.",
            when=lambda e: (
                e.diagnosis is Diagnosis.DTYPE_MISMATCH
                and e.failure is not None
                and "int" in e.failure.message
                and e.case.rows[0].dtype.is_floating_point
            ),
        ),
        Mistake(
            "The rows are in the order of arrival. They belong in rank order: keep a list with a"
            " place for every rank, and join it at the end.",
            when=lambda e: e.diagnosis is Diagnosis.WRONG_VALUE and e.wildcards,
        ),
        Mistake(
            "The rows are in the order of your steps. They belong in rank order: put what comes"
            " from src into place src of a list, and join the list at the end.",
            gives=lambda c: _arrived(c, lambda r: [(r - s) % c.n for s in c.ranks]),
        ),
        Mistake(
            "Your own rows come first, but they belong in rank order like all the others.",
            gives=lambda c: _arrived(c, lambda r: sorted(c.ranks, key=lambda j: (j != r, j))),
        ),
        Mistake(
            "The rows that a rank keeps for itself are missing from its result.",
            gives=lambda c: _arrived(c, lambda r: [j for j in c.ranks if j != r]),
        ),
        Mistake(
            "The offset is not moved past your own rows: the rows for rank dst begin after those"
            " for all ranks before it, your own included.",
            gives=_own_count_skipped,
        ),
        Mistake(
            "Every rank sends all of its rows to every other one. Send rank dst only the"
            " counts[dst] rows that are for it.",
            when=sends_everything,
        ),
        ALL_SEND,
    ),
)
