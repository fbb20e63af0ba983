"""What an exercise asks of the traffic: how much of something may, or must, be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from grader.cases import Case
from grader.errors import DeclarationError
from grader.traffic.trace import Measured, Operation, Trace
from grader.verdict import Bound, Diagnosis

__all__ = [
    "Limit",
    "calls",
    "largest_call",
    "messages",
    "neighbours_only",
    "overlaps",
    "rounds",
    "sent",
    "sent_elements",
    "through",
    "total_bytes",
]

#: Later than every time of a record, in nanoseconds.
_NEVER = 1 << 63


@dataclass(frozen=True)
class Limit:
    """What an exercise asks of the traffic.

    Attributes:
        quantity: what is counted, as it reads in a report.
        measure: counts it in a trace, or in what simulated ranks have sent.
        relation: ``=``, ``≤`` or ``≥``.
        asked: the bound for a case.
        over, under: the diagnosis if there is too much or too little.
    """

    quantity: str
    measure: Callable[[Measured], int]
    relation: str
    asked: Callable[[Case], int]
    over: Diagnosis
    under: Diagnosis

    def judge(self, case: Case, trace: Trace) -> Bound:
        """The measured number beside what is asked."""
        return Bound(self.quantity, self.measure(trace), self.relation, self.asked(case))

    def diagnose(self, bound: Bound) -> Diagnosis:
        """The word for a bound that does not hold."""
        return self.over if bound.measured > bound.asked else self.under


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

    def count(trace: Measured) -> int:
        if not isinstance(trace, Trace):
            raise DeclarationError("rounds are those of a trace, and there is none")
        return trace.traffic.rounds

    return Limit(
        "rounds",
        count,
        relation,
        asked,
        Diagnosis.TOO_MANY_ROUNDS,
        Diagnosis.TOO_FEW_ROUNDS,
    )


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

    def count(trace: Measured) -> int:
        if not isinstance(trace, Trace):
            raise DeclarationError("who talks to whom is looked at on real ranks only")
        return sum(root not in (op.rank, op.peer) for op in trace.sends())

    return Limit(
        f"messages that do not go through rank {root}",
        count,
        "=",
        lambda case: 0,
        Diagnosis.NOT_NEIGHBOUR,
        Diagnosis.NOT_NEIGHBOUR,
    )


def largest_call(kind: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """Bytes of the largest call of a collective."""

    def measure(trace: Measured) -> int:
        if not isinstance(trace, Trace):
            raise DeclarationError("calls are looked at on real ranks only; drop the growth")
        return max((op.nbytes for op in _calls(trace, kind)), default=0)

    return Limit(
        f"bytes of the largest {kind}",
        measure,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    )


def overlaps(kind: str, mark: str, asked: Callable[[Case], int]) -> Limit:
    """Ranks that had called a collective, and did not yet wait for it, when they came by a mark.

    The last mark of that name does not count less than the others: who has it in flight at
    any of them computes while it is on its way.
    """

    def count(trace: Measured) -> int:
        if not isinstance(trace, Trace):
            raise DeclarationError("what overlaps is looked at on real ranks only")
        return sum(
            any(
                op.kind == kind and op.posted < seen.time and not (op.blocked or _NEVER) < seen.time
                for op in operations
                for seen in marks
                if seen.text == mark
            )
            for operations, marks in zip(trace.operations, trace.marks, strict=True)
        )

    return Limit(
        f"ranks that compute while an {kind} is in flight",
        count,
        "≥",
        asked,
        Diagnosis.NO_OVERLAP,
        Diagnosis.NO_OVERLAP,
    )


def _calls(trace: Trace, kind: str) -> Iterator[Operation]:
    for operations in trace.operations:
        yield from (op for op in operations if op.kind == kind)


def calls(kinds: Set[str], relation: str, asked: Callable[[Case], int]) -> Limit:
    """Calls of some collectives, summed over ranks; ``send`` counts messages."""

    def count(trace: Measured) -> int:
        if not isinstance(trace, Trace):
            raise DeclarationError("calls are counted on real ranks only; drop the growth")
        return sum(op.kind in kinds for calls in trace.operations for op in calls)

    return Limit(
        f"calls of {' or '.join(sorted(kinds))}",
        count,
        relation,
        asked,
        Diagnosis.TOO_MANY_MESSAGES,
        Diagnosis.TOO_FEW_MESSAGES,
    )
