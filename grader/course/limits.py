"""What an exercise asks of the traffic: how much of something may, or must, be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace

from grader.core.errors import DeclarationError
from grader.core.verdict import Bound, Diagnosis
from grader.course.cases import Case
from grader.trace.trace import Measured, Operation, Trace

__all__ = [
    "Limit",
    "calls",
    "given",
    "largest_call",
    "levels",
    "messages",
    "neighbours_only",
    "overlaps",
    "point",
    "rounds",
    "sent",
    "sent_elements",
    "through",
    "total_bytes",
]


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
