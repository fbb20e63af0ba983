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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import cloudpickle

from grader.cases import Case, Draw
from grader.errors import DeclarationError
from grader.limits import Limit
from grader.traffic.trace import Trace
from grader.verdict import Diagnosis, Failure

__all__ = [
    "STANDARD_SIZES",
    "Evidence",
    "Exercise",
    "Growth",
    "Mistake",
]

#: The world sizes that exercises are judged at.
STANDARD_SIZES = (1, 2, 3, 4, 5, 8)


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
