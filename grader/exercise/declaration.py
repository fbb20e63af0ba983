"""The declaration of an exercise: its statement, its cases, and what is judged.

A declaration reads like the statement of the exercise::

    broadcast = Exercise(
        signature="broadcast(x: Tensor, src: int) -> None",
        summary="in place; everyone ends with src's x",
        inputs=lambda draw: (
            draw.case(f"{kind} from rank {src}", x=draw.per_rank(kind), src=src)
            for kind, src in draw.with_roots(kinds(draw.n))
        ),
        values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
        traffic=TrafficRules(limits=(messages("=", lambda c: c.n - 1),)),
    )

``c.x`` is the column of an argument that differs by rank: a list with one
entry per rank; ``c.src`` an argument that is the same on every rank.  Hints and advice are
text (:mod:`grader.exercise.help`), and mistakes are programs (:mod:`grader.exercise.answers`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from grader.errors import DeclarationError
from grader.exercise.answers import KnownAnswer
from grader.exercise.cases import OPS, Case, Draw, magnitude, reduced
from grader.exercise.help import Help
from grader.exercise.limits import Limit
from grader.exercise.verdict import Bound, Comparison, Grade, gravest
from grader.submission.outline import Outline
from headcount.core.program import packed_by_value
from headcount.core.verdict import HEADCOUNT, Diagnosis, Failure, RaisedException
from headcount.trace.trace import Trace

__all__ = [
    "STANDARD_SIZES",
    "Evidence",
    "Exercise",
    "Growth",
    "JudgedCase",
    "Mistake",
    "TrafficRules",
    "Values",
    "reduced_in_place",
]

#: The numbers of ranks that exercises are judged on, if they say nothing else.
STANDARD_SIZES = (1, 2, 3, 4, 5, 8)


@dataclass(frozen=True)
class JudgedCase:
    """One case or limit that was judged, with its outcome.

    Attributes:
        case: the input.
        diagnosis: what is wrong; ``None`` if it passed.
        actual: what each rank holds; empty if the world failed, and for a limit.
        failure: why the world failed, if it did.
        trace: the traffic.
        limit: the limit on the traffic that was judged; ``None`` for values.
        misses_point: whether it shows that the answer misses the point of its exercise.
        arguments: what each rank's arguments hold afterwards; empty like ``actual``.
    """

    case: Case
    diagnosis: Diagnosis | None
    actual: Sequence[Any]
    failure: Failure | None
    trace: Trace
    limit: Bound | None = None
    misses_point: bool = False
    arguments: Sequence[Sequence[Any]] = ()

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.diagnosis is None

    @property
    def gravity(self) -> int:
        """How grave its failure is; 0 if it passed."""
        return 0 if self.diagnosis is None else self.diagnosis.gravity

    @property
    def minor(self) -> bool:
        """Whether only another reduction than the sum is wrong, or only the last bits."""
        other = any(self.case.columns.get("op") == op for name, op in OPS.items() if name != "SUM")
        return self.limit is None and (
            self.diagnosis is Diagnosis.NONDETERMINISTIC
            or (self.diagnosis is Diagnosis.WRONG_VALUE and other)
        )


@dataclass(frozen=True)
class Evidence:
    """All that is known of a wrong answer when a hint is chosen.

    It holds every case and limit that was judged until two world sizes of more than
    one rank had failed, passed ones too: what passes says as much about a mistake as
    what fails.  It also holds those of a larger world that has failed more gravely.
    ``case``, ``diagnosis``, ``actual``, ``failure`` and ``trace`` are those of the
    gravest failure, which the message is about.

    Attributes:
        judged: in the order of the exercise.
        source: the answer's function, then the helpers that it calls; empty where
            the source is not available.
    """

    judged: tuple[JudgedCase, ...]
    source: tuple[Outline, ...] = ()

    @property
    def here(self) -> JudgedCase:
        """The failure that leads the verdict, see :func:`grader.exercise.verdict.gravest`."""
        lead = gravest(self.failed)
        assert lead is not None
        return lead

    @property
    def case(self) -> Case:
        """The input."""
        return self.here.case

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis of the gravest failure."""
        assert self.here.diagnosis is not None
        return self.here.diagnosis

    def races(self, *kinds: str) -> bool:
        """Return whether operations race for a buffer: the one that uses it and the one in flight.

        The one kind of operation stands alone where the program itself changes the buffer.
        """
        return self.here.failure is not None and self.here.failure.race == kinds

    def raised(self, *kinds: str) -> bool:
        """Return whether a rank has raised an exception of one of these classes, by name."""
        return self.exception.kind in kinds

    def refused(self, kind: str) -> bool:
        """Return whether a call of a rank was refused by this exception of headcount's."""
        return self.exception.owner == HEADCOUNT and self.exception.kind == kind

    @property
    def actual(self) -> Sequence[Any]:
        """What each rank holds."""
        return self.here.actual

    @property
    def failure(self) -> Failure | None:
        """Why the world failed, if it did."""
        return self.here.failure

    @property
    def exception(self) -> RaisedException:
        """The exception that a rank has raised; without a kind if none has."""
        return RaisedException() if self.failure is None else self.failure.raised

    @property
    def trace(self) -> Trace:
        """The traffic."""
        return self.here.trace

    @property
    def wildcards(self) -> bool:
        """Whether a rank received from any rank."""
        return self.trace.wildcards

    @property
    def failed(self) -> list[JudgedCase]:
        """What failed."""
        return [one for one in self.judged if not one.passed]

    @property
    def passed(self) -> list[JudgedCase]:
        """What passed."""
        return [one for one in self.judged if one.passed]

    def calls(self, *names: str) -> bool:
        """Return whether the source calls one of these: ``send`` stands for ``dist.send``, too."""
        return any(
            call == name or call.endswith(f".{name}")
            for part in self.source
            for call in part.calls
            for name in names
        )

    def loops(self, pattern: str) -> bool:
        """Return whether the source loops over what this regular expression fully matches."""
        return any(re.fullmatch(pattern, loop) for part in self.source for loop in part.loops)

    def written(self, pattern: str) -> bool:
        """Return whether this regular expression occurs in the code, comments aside."""
        return any(re.search(pattern, part.text) for part in self.source)


@dataclass(frozen=True)
class Mistake:
    """A mistake that is seen by a condition, and the hint that fits it.

    Most mistakes are programs (:mod:`grader.exercise.answers`), which are asked first.  A
    condition is for a whole family of programs that the evidence shows: any index past the end,
    say.  The first that holds counts, so a special case comes before the general one.

    Attributes:
        hint: the text.
        when: whether the evidence proves it, by fields and not by the text of a message.  It must
            hold for this mistake alone, and not for any wrong answer.
        grade: how well the hint is known where it holds.
    """

    hint: str
    when: Callable[[Evidence], bool]
    grade: Grade = Grade.SUPPORTED


@dataclass(frozen=True)
class Growth:
    """The run on many simulated ranks of an answer that is right on real ones.

    Attributes:
        case: draws the input of a world size.
        size: the number of ranks.  More would take longer and show no more, since limits hold for
            each size exactly.  67 is prime, and more than an answer with room for 64 can serve.
        values: the largest size at which values are compared as well; beyond it only
            the traffic is judged, where making the data would take longer than the run.
    """

    case: Callable[[Draw], Case]
    size: int = 67
    values: int = 256


@dataclass(frozen=True)
class Values:
    """What ranks must hold, and how it is compared with what they hold.

    Attributes:
        expected: the oracle: what each rank must hold afterwards; ``None`` for one that is killed.
        result: the parameter that holds the result in place, or ``None``
            where the result is returned.
        facts: what is compared of what a rank returned, where many results are right or the value
            cannot travel: worked out in the judge, since a rank could say anything of its own.
        also: other results that are as right: lists like the oracle's, of which all ranks must
            hold the same one; ``None`` where there is one right result.
        reduced: how many values are reduced into each element; ``None`` where
            data is only moved and must agree bit by bit.
        magnitude: for reductions that can cancel, a bound on the sizes of the terms; for
            numbers of a formula, what their error is relative to.
        relative: relative error allowed for numbers of a formula, which may be
            evaluated in any order.
        same_bits: whether all ranks must hold the same bits, and the same
            whatever order their messages arrive in.
        agree: whether all ranks must hold the same bits, though another run may give others;
            a rank that is killed holds none.
    """

    expected: Callable[[Case], Sequence[Any]]
    result: str | None = None
    facts: Callable[[Case, Any], Any] | None = None
    also: Callable[[Case], Sequence[Sequence[Any]]] | None = None
    reduced: Callable[[Case], int] | None = None
    magnitude: Callable[[Case], Sequence[Any]] | None = None
    relative: float = 0.0
    same_bits: bool = False
    agree: bool = False


def reduced_in_place(same_bits: bool = False) -> Values:
    """Return that every rank must hold the reduction ``op`` of all ranks' ``x``, in ``x``."""
    return Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
        same_bits=same_bits,
    )


@dataclass(frozen=True)
class TrafficRules:
    """What ranks may call and send.

    Attributes:
        limits: limits on the traffic, each judged as its own case.
        growth: the simulated ranks that limits are judged on besides, if any.
        least: bytes that all ranks together must have received if they hold what
            they should, by :mod:`grader.exercise.limits`; ``None`` where nothing
            follows from the values.
        proof: finds mistakes that only the traffic shows, in a run whose values are
            right; returns a failure or ``None``.
        carried: what messages must carry, by sender and receiver: an answer may hold the right
            numbers and have computed them where they should have come from.  Large messages are
            not compared.
        remark: a remark on a run that passes all the same; empty if there is none.
        allowed: collectives that may be called.
        store: whether ranks may put values into the store, where others put addresses only.
    """

    limits: tuple[Limit, ...] = ()
    growth: Growth | None = None
    least: Callable[[Case, Sequence[Any]], int] | None = None
    proof: Callable[[Case, Trace], Failure | None] | None = None
    carried: Callable[[Case], Mapping[tuple[int, int], torch.Tensor]] | None = None
    remark: Callable[[Case, Trace], str] | None = None
    allowed: frozenset[str] = frozenset()
    store: bool = False


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Attributes:
        signature: the header that the student writes; it names the exercise and its
            parameters. ``NAME: str`` asks for a text.
        summary: one line for lists.
        inputs: draws the cases of a world size.
        values: what ranks must hold.
        traffic: what they may call and send.
        world_sizes: the numbers of ranks that it is judged on.
        points: what it is worth.
        demo: a case whose data are :mod:`headcount.core.values`, for a replay.
        mistakes: hints for what no program of ``programs`` shows, tried in order.
        compiled: where a text is asked for, which is C++ source: the function in it
            that is judged, as Python sees it; all of its parameters are tensors.
        on_cpu: whether its tensors have to be on the CPU, so that no backend of GPUs can judge it.
        adapter: makes the call where it is more than passing arguments; it is pickled
            by value and runs in the ranks, so it must not refer to the oracle.
        point: whether a case that failed misses the point of the exercise, as a limit can; see
            :func:`grader.exercise.limits.point`.
        patient: where answers decide by time limits: returns the same case with more time if a
            run may have gone wrong because a busy machine made a rank late, else ``None``.
        chapter: name of the chapter; this and all that follows is set by discovery.
        chapter_title: the title of the chapter.
        part: the part of the course that the chapter stands in.
        help: hints and advice, from the text beside the chapter.
        programs: reads the mistakes that are known as programs, which takes a while.
        others: what answers that pass are compared with, if there is anything.

    Raises:
        DeclarationError: the declaration contradicts itself.
    """

    signature: str
    summary: str
    inputs: Callable[[Draw], Iterable[Case]]
    values: Values
    traffic: TrafficRules = TrafficRules()
    world_sizes: tuple[int, ...] = STANDARD_SIZES
    points: float = 1.0
    demo: Callable[[int], Case] | None = None
    mistakes: tuple[Mistake, ...] = ()
    compiled: str = ""
    on_cpu: bool = False
    adapter: Callable[..., Any] | None = None
    point: Callable[[JudgedCase], bool] | None = None
    patient: Callable[[JudgedCase], Case | None] | None = None
    chapter: str = ""
    chapter_title: str = ""
    part: str = ""
    help: Help = field(default_factory=Help)
    programs: Callable[[], Sequence[KnownAnswer]] = tuple
    others: Comparison | None = None
    _header: ast.FunctionDef = field(init=False, repr=False, compare=False)
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_text", _name_of_text(self.signature))
        if bool(self._text) != bool(self.compiled):
            raise DeclarationError(
                f"signature {self.signature!r} and compiled {self.compiled!r}: a text needs the"
                " function that is compiled from it, and nothing else has one"
            )
        object.__setattr__(self, "_header", _header_of(self.compiled or self.signature))
        if self.values.result is not None and self.values.result not in self.parameters:
            raise DeclarationError(
                f"{self.name}: result {self.values.result!r} is none of its parameters"
                f" ({', '.join(self.parameters)})"
            )

    @property
    def name(self) -> str:
        """The name that a student's definition must have."""
        return self._text or self._header.name

    @property
    def function(self) -> str:
        """The name of the function that is called: of a compiled text, the one in it."""
        return self._header.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters in order, ``*args`` and keyword-only ones included."""
        given = self._header.args
        every = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs)
        return tuple(one.arg for one in every if one is not None)

    @property
    def returns(self) -> bool:
        """Whether the signature says that a value is returned."""
        annotation = self._header.returns
        if annotation is None:
            return False
        return not (isinstance(annotation, ast.Constant) and annotation.value is None)

    def cases(self, seed: int, n: int) -> list[Case]:
        """Draw the cases at world size ``n``.

        Raises:
            DeclarationError: an input does not fit the signature.
        """
        cases = list(self.inputs(Draw(seed, self.name, n)))
        for case in cases:
            if self.adapter is not None:
                continue
            if self._header.args.kwonlyargs or self._header.args.vararg:
                raise DeclarationError(
                    f"{self.name}: arguments are passed by position; an adapter must make a call"
                    f" of {self.signature!r}"
                )
            if tuple(case.columns) != self.parameters:
                raise DeclarationError(
                    f"{self.name}, case {case.name!r}: arguments {tuple(case.columns)},"
                    f" but the signature says {self.parameters}"
                )
        return cases

    def packed_adapter(self) -> bytes:
        """Return the adapter pickled by value, so that ranks never import exercises and oracles."""
        return b"" if self.adapter is None else packed_by_value(self.adapter)


def _name_of_text(signature: str) -> str:
    """Return ``NAME`` of the signature ``NAME: str``, or an empty string for any other."""
    try:
        statement = ast.parse(signature).body[0]
    except (SyntaxError, IndexError):
        return ""
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        return ""
    return statement.target.id if ast.unparse(statement.annotation) == "str" else ""


def _header_of(signature: str) -> ast.FunctionDef:
    try:
        header = ast.parse(f"def {signature}: ...").body[0]
    except SyntaxError as error:
        raise DeclarationError(
            f"signature {signature!r} is no function header: {error.msg}"
        ) from None
    if not isinstance(header, ast.FunctionDef):
        raise DeclarationError(f"signature {signature!r} is no function header")
    return header
