"""What an exercise asks of the traffic: how much of something may, or must, be sent."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from grader.cases import Case
from grader.errors import DeclarationError
from grader.traffic.trace import Measured, Trace
from grader.verdict import Bound, Diagnosis

__all__ = [
    "Limit",
    "calls",
    "messages",
    "neighbours_only",
    "rounds",
    "sent",
    "sent_elements",
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
