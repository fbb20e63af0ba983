"""What an exercise asks of the traffic: how much of something may, or must, be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.core.errors import DeclarationError
from grader.core.verdict import Bound, Diagnosis
from grader.course.cases import Case
from grader.course.oracles import op_name
from grader.trace.trace import Measured, Operation, Trace

__all__ = [
    "LUCK",
    "Limit",
    "calls",
    "combined",
    "given",
    "largest_call",
    "levels",
    "messages",
    "moved",
    "neighbours_only",
    "overlaps",
    "point",
    "rounds",
    "sent",
    "sent_elements",
    "through",
    "total_bytes",
]


# What ranks must have been told, judging by what they hold: a bound that no algorithm beats. ----
#
# Inputs are random (:class:`grader.course.cases.Draw`), so a rank that holds what others
# brought either was told or was lucky.  (In the first case of a world size they can be
# foreseen: an answer that is told too little there is asked to send, and is not called tampering.)
#  How much luck it takes is known: each
# element counts for as many bits as its likeliest value is improbable, rounded
# down.  What a rank could do with :data:`LUCK` bits less is not counted, and so
# an answer that was told less than the bound is right by chance once in 2³² times
# at most.  The bound is for all roads together, and counts what arrives only: it
# holds for every algorithm, for whatever dtype the messages have, and however well
# they are packed.
#
# No bound is declared where a rank computes the result from its own arguments
# (``who_am_i``, ``neighbours``, ``ping_pong``, ``ring_schedule``, ``stuck_ranks``,
# ``stuck_ranks_any_all``,
# and chapters 10, 13 and 16), where there is no result (``barrier``), and where it is a
# single number (``unblock_branch``), which a wrong answer can meet by chance.

#: Bits that a rank may have guessed.
LUCK = 32

#: Bits of a number that was drawn, and that has to agree bit by bit.  An integer is one
#: of 199.  A floating-point number is made of 32 bits; of the narrower ones, the
#: likeliest lie below 2, where they are 2⁻²³ and 2⁻⁷ apart.
_DRAWN = {torch.int64: 7, torch.float64: 31, torch.float32: 24, torch.bfloat16: 8}

#: Bits of a sum, a mean or a product, for one who knows all terms but one: it may be off
#: by some roundings of every term (:func:`grader.core.compare.tolerance`).
_COMBINED = {torch.int64: 7, torch.float64: 24, torch.float32: 8, torch.bfloat16: 1}

#: The same of a product of integers: each is ±1 or ±2.
_FACTOR = 2


def moved(case: Case, expected: Sequence[Any]) -> int:
    """Bytes that all ranks together must receive if each has to hold ``expected``.

    For exercises that move data.  Numbers that a rank finds among its own
    arguments it need not receive.
    """
    return _bytes(_strange(case, expected, _DRAWN))


def combined(case: Case, expected: Sequence[Any]) -> int:
    """The same for exercises that reduce data: by ``case.op``, or in the way of a sum.

    The smallest and the largest may be a rank's own, so they do not count.
    """
    op = op_name(case.op) if "op" in case.columns else "SUM"
    if op in ("MIN", "MAX"):
        return 0
    worth = {**_COMBINED, torch.int64: _FACTOR} if op == "PRODUCT" else _COMBINED
    return _bytes(_strange(case, expected, worth))


def _bytes(bits: Iterator[int]) -> int:
    # luck is each rank's own: where all must hold the same, one guess would do for all
    return sum(max(0, told - LUCK) for told in bits) // 8


def _strange(
    case: Case, expected: Sequence[Any], worth: Mapping[torch.dtype, int]
) -> Iterator[int]:
    """For every rank, the bits of what it should hold and cannot find among its arguments."""
    for rank in case.ranks:
        own = [t.flatten() for t in _tensors(case.arguments(rank))]
        yield sum(
            worth.get(tensor.dtype, 0) * _new(tensor, [t for t in own if t.dtype == tensor.dtype])
            for tensor in _tensors(expected[rank])
        )


def _new(tensor: torch.Tensor, own: Sequence[torch.Tensor]) -> int:
    """How many elements are none of these; float64 holds every number that is drawn."""
    known = torch.cat([tensor.new_empty(0), *own]).double()
    return int((~torch.isin(tensor.double(), known)).sum())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


# Limits. --------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """What an exercise asks of the traffic.

    Attributes:
        quantity: what is counted, as it reads in a report.
        measure: counts it in a trace, or in what simulated ranks have sent.
        relation: ``=``, ``≤`` or ``≥``.
        asked: the bound for a case.
        over, under: the diagnosis if there is too much or too little.
        point: whether it is the point of the exercise, see :func:`point`.
    """

    quantity: str
    measure: Callable[[Measured], int]
    relation: str
    asked: Callable[[Case], int]
    over: Diagnosis
    under: Diagnosis
    point: bool = False

    def judge(self, case: Case, trace: Trace) -> Bound:
        """The measured number beside what is asked."""
        return Bound(self.quantity, self.measure(trace), self.relation, self.asked(case))

    def diagnose(self, bound: Bound) -> Diagnosis:
        """The word for a bound that does not hold."""
        return self.over if bound.measured > bound.asked else self.under


def point(limit: Limit) -> Limit:
    """The same limit as the point of its exercise.

    An answer that misses it at any world size earns at most half of the points, however
    right its values are.
    """
    return replace(limit, point=True)


def messages(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Point-to-point messages, summed over ranks."""
    return Limit(
        "messages",
        lambda trace: trace.traffic.messages,
        relation,
        asked,
        Diagnosis.TOO_MANY_MESSAGES,
        Diagnosis.TOO_FEW_MESSAGES,
    )


def total_bytes(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Bytes sent, summed over ranks."""
    return Limit(
        "bytes in all",
        lambda trace: trace.traffic.bytes,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def sent(relation: str, asked: Callable[[Case], int]) -> Limit:
    """The most bytes that any one rank sends."""
    return Limit(
        "bytes sent by one rank",
        lambda trace: trace.traffic.max_sent,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def sent_elements(relation: str, asked: Callable[[Case], int]) -> Limit:
    """The most elements that any one rank sends."""
    return Limit(
        "elements sent by one rank",
        lambda trace: trace.max_sent_elements,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def rounds(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Rounds, when every message takes one and ports are single."""

    return Limit(
        "rounds",
        lambda trace: _record(trace).traffic.rounds,
        relation,
        asked,
        Diagnosis.TOO_MANY_ROUNDS,
        Diagnosis.TOO_FEW_ROUNDS,
    )


def levels(n: int) -> int:
    """⌈log₂ n⌉, the rounds of a binomial tree, without a logarithm that could round."""
    return (n - 1).bit_length()


def neighbours_only() -> Limit:
    """Nobody sends to another than its left or right neighbour on the ring."""
    return Limit(
        "messages to ranks that are no neighbours",
        lambda trace: trace.stranger_count,
        "=",
        lambda case: 0,
        Diagnosis.NOT_NEIGHBOUR,
        Diagnosis.NOT_NEIGHBOUR,
    )


def through(root: int) -> Limit:
    """Every message comes from one rank or goes to it."""
    return Limit(
        f"messages that do not go through rank {root}",
        lambda trace: sum(root not in (op.rank, op.peer) for op in _record(trace).sends()),
        "=",
        lambda case: 0,
        Diagnosis.NOT_NEIGHBOUR,
        Diagnosis.NOT_NEIGHBOUR,
    )


def largest_call(kind: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """Bytes of the largest call of a collective."""
    return Limit(
        f"bytes of the largest {kind}",
        lambda trace: max((op.nbytes for op in _calls(trace, {kind})), default=0),
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def overlaps(kind: str, mark: str, asked: Callable[[Case], int]) -> Limit:
    """Ranks that came by a mark after they had called a collective, and before they waited for it.

    A mark says that something has been computed; whoever comes by one while a collective is
    on its way computes meanwhile.
    """

    def flies(op: Operation, time: int) -> bool:
        return op.kind == kind and op.posted < time and (op.blocked is None or time < op.blocked)

    def count(trace: Measured) -> int:
        record = _record(trace)
        return sum(
            any(flies(op, seen.time) for seen in marks if seen.text == mark for op in operations)
            for operations, marks in zip(record.operations, record.marks, strict=True)
        )

    return Limit(
        f"ranks that compute while an {kind} is in flight",
        count,
        "≥",
        asked,
        Diagnosis.NO_OVERLAP,
        Diagnosis.NO_OVERLAP,
    )


def _record(trace: Measured) -> Trace:
    """The record that a limit needs; of simulated ranks there may be none."""
    if not isinstance(trace, Trace):
        raise DeclarationError("this limit is judged on the record of real ranks; drop the growth")
    return trace


def _calls(trace: Measured, kinds: Set[str]) -> Iterator[Operation]:
    for operations in _record(trace).operations:
        yield from (op for op in operations if op.kind in kinds)


def given(kind: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """The most elements that any one rank gives to each other in calls of a collective."""

    def most(trace: Measured) -> int:
        by_rank = [0] * len(_record(trace).operations)
        for op in _calls(trace, {kind}):
            by_rank[op.rank] += sum(max(one.gives, default=0) for one in op.signatures)
        return max(by_rank, default=0)

    return Limit(
        f"elements that one rank gives to {kind}",
        most,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def calls(kinds: Set[str], relation: str, asked: Callable[[Case], int]) -> Limit:
    """Calls of some collectives, summed over ranks; ``send`` counts messages."""
    return Limit(
        f"calls of {' or '.join(sorted(kinds))}",
        lambda trace: sum(1 for _ in _calls(trace, kinds)),
        relation,
        asked,
        Diagnosis.TOO_MANY_MESSAGES,
        Diagnosis.TOO_FEW_MESSAGES,
    )
