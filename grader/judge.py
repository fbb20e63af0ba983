"""An exercise, a submission and a launcher: the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from grader.compare import Difference, compare
from grader.errors import GraderError, WorldError
from grader.exercise import Case, Evidence, Exercise, Limit
from grader.hints import choose_hint
from grader.submission import Submission
from grader.values import describe, show
from grader.verdict import (
    CaseVerdict,
    Diagnosis,
    ExerciseVerdict,
    Failure,
    RankRow,
    Site,
    Status,
)
from grader.worlds.base import Job, Outcome, World
from grader.worlds.launch import Launcher
from grader.worlds.processes import ProcessWorld

__all__ = ["Judge", "Settings"]

#: After these no further case can tell anything new, or each costs its time limit.
_FINAL = frozenset(
    {
        Diagnosis.NOT_ATTEMPTED,
        Diagnosis.FORBIDDEN_CALL,
        Diagnosis.TAMPERING,
        Diagnosis.TIMEOUT,
    }
)

#: These cost the whole exercise.
_WORTHLESS = frozenset({Diagnosis.FORBIDDEN_CALL, Diagnosis.TAMPERING, Diagnosis.NOT_ATTEMPTED})


@dataclass(frozen=True)
class Settings:
    """How to judge.

    Attributes:
        seed: of the inputs.
        world_sizes: judge at these only; ``None`` is what each exercise says.
        seconds: wall clock that one call may take.
        memory: bytes that a rank may allocate.
    """

    seed: int
    world_sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    memory: int = 2 << 30


class Judge:
    """Judges submissions against exercises.

    Args:
        launcher: starts the ranks.
        settings: seed, sizes and limits.
    """

    def __init__(self, launcher: Launcher, settings: Settings) -> None:
        self._launcher = launcher
        self._settings = settings

    def judge(self, exercise: Exercise, submission: Submission) -> ExerciseVerdict:
        """The verdict on one exercise of a submission; never raises for what a student did."""
        started = time.monotonic()
        verdict = self._judge(exercise, submission)
        return replace(verdict, seconds=round(time.monotonic() - started, 3))

    def _judge(self, exercise: Exercise, submission: Submission) -> ExerciseVerdict:
        absent = _absent(exercise, submission)
        if absent is not None:
            return self._verdict(exercise, Status.FAILED, (), absent)
        sizes = [
            n
            for n in self._settings.world_sizes or exercise.world_sizes
            if n in exercise.world_sizes or n >= min(exercise.world_sizes)
        ]
        if not sizes:
            message = f"needs at least {min(exercise.world_sizes)} ranks"
            return self._verdict(exercise, Status.SKIPPED, (), message=message)
        try:
            return self._run(exercise, submission, sizes)
        except WorldError as error:
            message = f"the grader failed, not the answer: {error}"
            return self._verdict(exercise, Status.ERROR, (), message=message)
        finally:
            self._launcher.settle()

    def _run(
        self, exercise: Exercise, submission: Submission, sizes: Sequence[int]
    ) -> ExerciseVerdict:
        plan = {n: exercise.cases(self._settings.seed, n) for n in sizes}
        verdicts: list[CaseVerdict] = []
        evidence: Evidence | None = None
        stop: CaseVerdict | None = None
        with _Worlds(self._open(submission), sizes) as worlds:
            for n, cases in plan.items():
                right: list[tuple[Case, Outcome]] = []
                for case in cases:
                    if stop is not None:
                        verdicts.append(_not_run(case, stop))
                        continue
                    outcome = worlds.run(n, _job(exercise, case, self._settings.seconds))
                    verdict, seen = _assess(exercise, case, outcome)
                    verdicts.append(verdict)
                    if verdict.passed:
                        right.append((case, outcome))
                    elif evidence is None:
                        evidence = seen
                    if verdict.diagnosis in _FINAL:
                        stop = verdict
                for limit in exercise.limits:
                    verdict, seen = _assess_limit(limit, n, right, verdicts)
                    verdicts.append(verdict)
                    if evidence is None and not verdict.passed:
                        evidence = seen
        return self._conclude(exercise, verdicts, evidence)

    def _open(self, submission: Submission) -> Callable[[int], World]:
        def open_world(n: int) -> World:
            return ProcessWorld(self._launcher, n, submission.program, memory=self._settings.memory)

        return open_world

    def _conclude(
        self, exercise: Exercise, cases: Sequence[CaseVerdict], evidence: Evidence | None
    ) -> ExerciseVerdict:
        failed = next((case for case in cases if not case.passed), None)
        if failed is None:
            return self._verdict(exercise, Status.PASSED, cases, score=exercise.points)
        share = sum(case.passed for case in cases) / len(cases)
        worthless = any(case.diagnosis in _WORTHLESS for case in cases)
        failure = Failure(
            failed.diagnosis or Diagnosis.WRONG_VALUE,
            f"{_ranks(failed.world_size)}, {failed.name}: {failed.message}"
            if failed.diagnosis is not Diagnosis.NOT_ATTEMPTED
            else "not written yet",
        )
        return self._verdict(
            exercise,
            Status.FAILED,
            cases,
            failure,
            score=0.0 if worthless else exercise.points * share,
            hint=choose_hint(exercise, failure.diagnosis, evidence),
        )

    def _verdict(
        self,
        exercise: Exercise,
        status: Status,
        cases: Sequence[CaseVerdict],
        failure: Failure | None = None,
        message: str = "",
        score: float = 0.0,
        hint: str = "",
    ) -> ExerciseVerdict:
        return ExerciseVerdict(
            name=exercise.name,
            chapter=exercise.chapter,
            status=status,
            score=round(score, 3),
            max_score=exercise.points,
            diagnosis=failure.diagnosis if failure else None,
            message=failure.message if failure else message,
            hint=hint or (choose_hint(exercise, failure.diagnosis, None) if failure else ""),
            seed=self._settings.seed,
            cases=tuple(cases),
        )


class _Worlds:
    """The worlds of one check, each started while the one before is at work."""

    def __init__(self, open_world: Callable[[int], World], sizes: Sequence[int]) -> None:
        self._open = open_world
        self._coming = list(sizes)
        self._worlds: dict[int, World] = {}

    def run(self, n: int, job: Job) -> Outcome:
        """Run a job on a world of ``n`` ranks that has seen no failure."""
        for size in (n, *self._following(n)):
            world = self._worlds.get(size)
            if world is None or not world.usable:
                self._worlds[size] = self._open(size)
        return self._worlds[n].run(job)

    def _following(self, n: int) -> list[int]:
        """The next size, once; the worlds before ``n`` are done with."""
        index = self._coming.index(n)
        for size in self._coming[:index]:
            self._worlds.pop(size).close()
        self._coming = self._coming[index:]
        return [size for size in self._coming[1:2] if size not in self._worlds]

    def __enter__(self) -> _Worlds:
        return self

    def __exit__(self, *_: object) -> None:
        for world in self._worlds.values():
            world.close()


def _absent(exercise: Exercise, submission: Submission) -> Failure | None:
    """Why there is nothing to run, if there is nothing."""
    name = exercise.name
    if name in submission.broken:
        fault = submission.broken[name]
        site = Site(fault.label, fault.line)
        return Failure(Diagnosis.SYNTAX_ERROR, f"{site}: {fault.message}", None, site)
    if name not in submission.names:
        return Failure(Diagnosis.MISSING, f"{submission.label} does not define {name}")
    return None


def _job(exercise: Exercise, case: Case, seconds: float) -> Job:
    return Job(
        entry=exercise.name,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=_pickled_adapter(exercise),
        allowed=exercise.allowed,
        seconds=seconds,
    )


def _pickled_adapter(exercise: Exercise) -> bytes:
    """The adapter by value, so that a rank need not import the exercise and its oracle."""
    if exercise.adapter is None:
        return b""
    import sys

    module = sys.modules[exercise.adapter.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(exercise.adapter))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _ranks(n: int) -> str:
    return "1 rank" if n == 1 else f"{n} ranks"


def _not_run(case: Case, because: CaseVerdict) -> CaseVerdict:
    return CaseVerdict(
        case.name,
        case.n,
        Status.FAILED,
        because.diagnosis,
        f"not run: {because.name} on {_ranks(because.world_size)} ended with {because.diagnosis}",
    )


def _assess(
    exercise: Exercise, case: Case, outcome: Outcome
) -> tuple[CaseVerdict, Evidence | None]:
    """Compare what the ranks hold with what they should hold."""
    actual, expected = _actual(exercise, case, outcome), list(exercise.expected(case))
    failure = outcome.failure
    if failure is not None:
        failure = _explain(exercise, failure)
    else:
        failure = _compare(exercise, case, outcome, expected, actual)
    verdict = CaseVerdict(
        case.name,
        case.n,
        Status.FAILED if failure else Status.PASSED,
        traffic=outcome.trace.traffic,
        output=outcome.output,
    )
    if failure is None:
        return verdict, None
    evidence = Evidence(case, failure.diagnosis, actual, outcome.failure, outcome.trace)
    return replace(
        verdict,
        diagnosis=failure.diagnosis,
        message=failure.message,
        rank=failure.rank,
        site=failure.site,
        detail=failure.detail,
        by_rank=_rows(exercise, case, expected, actual),
    ), evidence


def _actual(exercise: Exercise, case: Case, outcome: Outcome) -> list[Any]:
    """What each rank holds: the returned value, or the argument that holds the result."""
    if exercise.result is None:
        return [result.value for result in outcome.results]
    place = list(case.columns).index(exercise.result)
    return [result.arguments[place] for result in outcome.results]


def _terms(exercise: Exercise, case: Case) -> tuple[int, Sequence[Any]]:
    terms = exercise.reduced(case) if exercise.reduced else 0
    scales = exercise.magnitude(case) if exercise.magnitude else [None] * case.n
    return terms, scales


def _difference(
    exercise: Exercise, case: Case, rank: int, expected: Any, actual: Any
) -> Difference | None:
    terms, scales = _terms(exercise, case)
    return compare(expected, actual, terms, scales[rank], exercise.result or "")


def _compare(
    exercise: Exercise,
    case: Case,
    outcome: Outcome,
    expected: Sequence[Any],
    actual: Sequence[Any],
) -> Failure | None:
    for rank, result in enumerate(outcome.results):
        if exercise.result is not None and result.value is not None:
            return Failure(
                Diagnosis.WRONG_TYPE,
                f"rank {rank} returns {describe(result.value)}; the result belongs into"
                f" {exercise.result}, and nothing is returned",
                rank,
            )
    for rank in case.ranks:
        found = _difference(exercise, case, rank, expected[rank], actual[rank])
        if found:
            return Failure(found.diagnosis, f"rank {rank}: {found.message}", rank)
    for rank, result in enumerate(outcome.results):
        changed = _changed_argument(exercise, case, rank, result.arguments)
        if changed:
            return Failure(
                Diagnosis.INPUT_CHANGED,
                f"rank {rank}: {changed} must stay as it was, but has changed",
                rank,
            )
        if exercise.result is None and result.aliases:
            name = list(case.columns)[result.aliases[0]]
            return Failure(
                Diagnosis.ALIASED,
                f"rank {rank}: the result shares memory with {name}; return a copy",
                rank,
            )
    return None


def _changed_argument(
    exercise: Exercise, case: Case, rank: int, after: Sequence[Any]
) -> str | None:
    for name, before, now in zip(case.columns, case.arguments(rank), after, strict=True):
        if name != exercise.result and compare(before, now) is not None:
            return name
    return None


def _explain(exercise: Exercise, failure: Failure) -> Failure:
    """Say what a TypeError without a line of the student's means."""
    if failure.site is None and "TypeError" in failure.message and exercise.adapter is None:
        what = failure.message.split("TypeError: ", 1)[-1]
        return replace(
            failure,
            message=f"cannot be called as {exercise.signature.partition(' ->')[0]}: {what}",
        )
    return failure


def _rows(
    exercise: Exercise, case: Case, expected: Sequence[Any], actual: Sequence[Any]
) -> tuple[RankRow, ...]:
    if not actual:
        return ()
    return tuple(
        RankRow(
            rank,
            show(expected[rank]),
            show(actual[rank]),
            _difference(exercise, case, rank, expected[rank], actual[rank]) is None,
        )
        for rank in case.ranks
    )


def _assess_limit(
    limit: Limit,
    n: int,
    right: Sequence[tuple[Case, Outcome]],
    verdicts: Iterable[CaseVerdict],
) -> tuple[CaseVerdict, Evidence | None]:
    """Judge the traffic of the runs whose values were right."""
    bounds = [(case, outcome, limit.judge(case, outcome.trace)) for case, outcome in right]
    if not bounds:
        wrong = next(v for v in verdicts if v.world_size == n and not v.passed)
        return CaseVerdict(
            limit.quantity,
            n,
            Status.FAILED,
            wrong.diagnosis,
            "not judged: no run of this world size gave the right result",
        ), None
    broken = [entry for entry in bounds if not entry[2].holds]
    case, outcome, bound = (broken or bounds)[0]
    verdict = CaseVerdict(
        limit.quantity,
        n,
        Status.FAILED if broken else Status.PASSED,
        traffic=outcome.trace.traffic,
        bounds=(bound,),
    )
    if not broken:
        return verdict, None
    diagnosis = limit.diagnose(bound)
    message = f"{case.name}: {bound}"
    evidence = Evidence(case, diagnosis, (), None, outcome.trace)
    return replace(verdict, diagnosis=diagnosis, message=message), evidence


def grader_fault(error: BaseException) -> str:
    """One line for a fault of ours."""
    return f"{type(error).__name__}: {error}" if not isinstance(error, GraderError) else str(error)
