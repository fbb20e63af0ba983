"""How an exercise is declared: its inputs, its oracle, its limits, its hints.

A declaration reads like the statement of the exercise::

    broadcast = Exercise(
        signature="broadcast(x: Tensor, src: int) -> None",
        summary="in place; everyone ends with src's x",
        inputs=lambda draw: (
            draw.case(f"{kind} from rank {src}", x=draw.per_rank(kind), src=src)
            for kind, src in draw.with_roots(kinds(draw.n))
        ),
        result="x",
        expected=lambda c: [c.x[c.src]] * c.n,
        limits=(messages("=", lambda c: c.n - 1),),
        hints=("Only src has something to send.", ...),
    )

``c.x`` is the column of an argument that differs by rank, a list with one
entry per rank; ``c.src`` an argument that is the same on every rank.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import cloudpickle

from grader.cases import Case, Draw
from grader.errors import DeclarationError
from grader.traffic.trace import Measured, Trace
from grader.verdict import Bound, Diagnosis, Failure

__all__ = [
    "STANDARD_SIZES",
    "Evidence",
    "Exercise",
    "Growth",
    "Limit",
    "Mistake",
    "calls",
    "messages",
    "neighbours_only",
    "rounds",
    "sent",
    "sent_elements",
    "total_bytes",
]

#: The world sizes that exercises are judged at.
STANDARD_SIZES = (1, 2, 3, 4, 5, 8)


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
    return Limit(
        "rounds",
        lambda trace: trace.traffic.rounds,
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


@dataclass(frozen=True)
class Evidence:
    """What is known of a failed case when a hint is chosen.

    Attributes:
        case: the input.
        diagnosis: the word.
        actual: what each rank holds; empty if the world failed.
        failure: why the world failed, if it did.
        trace: the traffic.
    """

    case: Case
    diagnosis: Diagnosis
    actual: Sequence[Any]
    failure: Failure | None
    trace: Trace

    @property
    def wildcards(self) -> bool:
        """Whether a rank received from any rank."""
        return self.trace.wildcards

    def says(self, words: str) -> bool:
        """Whether the world failed with these words."""
        return self.failure is not None and words in self.failure.message


@dataclass(frozen=True)
class Mistake:
    """A mistake that is often made, and the hint that fits it.

    Attributes:
        hint: what to say.
        gives: what each rank would hold if this mistake were made, like the
            oracle; ``None`` from it means that the case cannot tell.
        when: other evidence of the mistake.
    """

    hint: str
    gives: Callable[[Case], Sequence[Any] | None] | None = None
    when: Callable[[Evidence], bool] | None = None


@dataclass(frozen=True)
class Growth:
    """What an answer that is right on real ranks is run on besides: many simulated ones.

    Attributes:
        case: draws the input of a world size.
        sizes: numbers of ranks, growing.
        values: up to this many, what the ranks hold is compared, too; beyond, only
            what they have sent, where the data would take longer than the run.
    """

    case: Callable[[Draw], Case]
    sizes: tuple[int, ...] = (64, 256)
    values: int = 256


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Attributes:
        signature: as the student writes it; names the exercise and its
            parameters.
        summary: one line for lists.
        inputs: draws the cases of a world size.
        expected: the oracle: what each rank must hold afterwards.
        result: the parameter that holds the result in place, or ``None``
            where the result is returned.
        world_sizes: where it is judged.
        limits: what is asked of the traffic, each judged as its own case.
        growth: where they are judged beyond the world sizes, if they are.
        allowed: collectives that may be called.
        hints: from gentle to plain.
        mistakes: hints for particular mistakes, tried in order.
        advice: hints by diagnosis, where no mistake is recognised.
        reduced: how many values are reduced into each element; ``None`` where
            data is only moved and must agree bit by bit.
        magnitude: for reductions that can cancel, a bound on the sizes summed; for
            numbers of a formula, what they may be off by is relative to it.
        relative: how far the numbers of a formula may be off, relative to their size:
            it may be worked out in any order, and each rounds in its own way.
        same_bits: whether all ranks must hold the same bits, and the same
            whatever order their messages arrive in.
        least: bytes that all ranks together must have received if they hold what
            they should, by :mod:`grader.information`; ``None`` where nothing
            follows from the values.
        proof: looks for what the values cannot show in the traffic of a run
            whose values are right; what is wrong, or ``None``.
        adapter: makes the call where it is more than passing arguments; runs
            in the ranks, so it holds no oracle.
        demo: a case whose data are :mod:`grader.tags`, for a replay.
        points: what it is worth.
        chapter: name of the chapter, set by discovery.
    """

    signature: str
    summary: str
    inputs: Callable[[Draw], Iterable[Case]]
    expected: Callable[[Case], Sequence[Any]]
    hints: tuple[str, ...]
    result: str | None = None
    world_sizes: tuple[int, ...] = STANDARD_SIZES
    limits: tuple[Limit, ...] = ()
    growth: Growth | None = None
    allowed: frozenset[str] = frozenset()
    mistakes: tuple[Mistake, ...] = ()
    advice: Mapping[Diagnosis, str] = field(default_factory=dict)
    reduced: Callable[[Case], int] | None = None
    magnitude: Callable[[Case], Sequence[Any]] | None = None
    relative: float = 0.0
    same_bits: bool = False
    least: Callable[[Case, Sequence[Any]], int] | None = None
    proof: Callable[[Case, Trace], Failure | None] | None = None
    adapter: Callable[..., Any] | None = None
    demo: Callable[[int], Case] | None = None
    points: float = 1.0
    chapter: str = ""
    _header: ast.FunctionDef = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            header = ast.parse(f"def {self.signature}: ...").body[0]
        except SyntaxError as error:
            raise DeclarationError(
                f"signature {self.signature!r} is no function header: {error.msg}"
            ) from None
        if not isinstance(header, ast.FunctionDef):
            raise DeclarationError(f"signature {self.signature!r} is no function header")
        object.__setattr__(self, "_header", header)
        if self.result is not None and self.result not in self.parameters:
            raise DeclarationError(
                f"{self.name}: result {self.result!r} is none of its parameters"
                f" ({', '.join(self.parameters)})"
            )
        if not self.hints:
            raise DeclarationError(f"{self.name} has no hint; give it at least one")

    @property
    def name(self) -> str:
        """The name that a student's definition must have."""
        return self._header.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters, in order."""
        return tuple(a.arg for a in self._header.args.args)

    def cases(self, seed: int, n: int) -> list[Case]:
        """The cases at world size ``n``.

        Raises:
            DeclarationError: an input does not fit the signature.
        """
        cases = list(self.inputs(Draw(seed, self.name, n)))
        for case in cases:
            if tuple(case.columns) != self.parameters and self.adapter is None:
                raise DeclarationError(
                    f"{self.name}, case {case.name!r}: arguments {tuple(case.columns)},"
                    f" but the signature says {self.parameters}"
                )
        return cases

    def packed_adapter(self) -> bytes:
        """The adapter by value, so that a rank need not import the exercise and its oracle."""
        return b"" if self.adapter is None else _packed(self.adapter)


@lru_cache(maxsize=64)
def _packed(adapter: Callable[..., Any]) -> bytes:
    module = sys.modules[adapter.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(adapter))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
