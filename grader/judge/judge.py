"""An exercise, a submission and a launcher: the verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from grader.core.errors import WorldError, shortage
from grader.core.outline import Outline
from grader.core.resource_limits import DEFAULTS
from grader.core.source_locations import with_source
from grader.core.values import tensors_in
from grader.core.verdict import CaseVerdict, Diagnosis, ExerciseVerdict, Failure, Site, Status
from grader.course.cases import Case
from grader.course.exercise import Evidence, Exercise, JudgedCase
from grader.course.hints import choose_hint
from grader.judge.assessment import assess, assess_again, assess_limit, ranks, rounding
from grader.judge.case_order import CaseOrder, not_run, too_late
from grader.judge.native import Native, build
from grader.judge.simulated_checks import grown
from grader.launch.process_group_handle import Launcher
from grader.launch.processes import SETUP_SECONDS, ProcessWorld
from grader.launch.world import Job, Outcome, World
from grader.submission.submission import Submission
from grader.trace.trace import Trace
from grader.trace.wildcard_schedules import Exploration, WildcardPolicy, named_race

__all__ = ["Judge", "Settings", "asks", "missed_point", "score"]


# What an answer earns: its share of the cases that ask for something, and the point of it all. ----
#
# A case *asks for nothing* if a function that does nothing would pass it: there is one
# rank in an exercise about communication, the tensors are empty, a shift is by 0.  Such a
# case is run and must pass, and costs as much as any other if it does not; but it earns
# nothing.  Which cases these are follows from the oracle, so that no exercise has to say.

#: These cost the whole exercise.
_WORTHLESS = frozenset({Diagnosis.FORBIDDEN_CALL, Diagnosis.TAMPERING, Diagnosis.NOT_ATTEMPTED})


def asks(exercise: Exercise, case: Case) -> bool:
    """Whether a function that does nothing would fail a case.

    It would pass where every rank is to hold nothing but what it was given, zeros, or
    nothing at all, and the record of a run without a single message proves no mistake;
    where the argument has to be refused, which a function that always raises does; and
    on one rank, where there is nobody to communicate with.
    """
    if case.n == 1 and _communicates(exercise):
        return False
    expected = list(exercise.expected(case))
    if any(_is_new(exercise, case, rank, expected[rank]) for rank in case.ranks):
        return True
    silence = Trace(((),) * case.n)
    return exercise.proof is not None and exercise.proof(case, silence) is not None


def _communicates(exercise: Exercise) -> bool:
    """Whether ranks need each other: not if all is worked out by each rank alone."""
    most = max(exercise.world_sizes)
    if most == 1:
        return False
    bounds = [
        (limit.relation, limit.asked(case))
        for case in (exercise.cases(0, most) if exercise.limits else [])
        for limit in exercise.limits
    ]
    return not bounds or set(bounds) != {("=", 0)}


def _is_new(exercise: Exercise, case: Case, rank: int, expected: Any) -> bool:
    """Whether a rank is to hold something that it was not given."""
    if expected == {"raises": True}:
        return False
    own = (
        tensors_in(list(case.arguments(rank)))
        if exercise.result is None
        else tensors_in(case.columns[exercise.result][rank])
    )
    return _adds(expected, list(own))


def _adds(value: Any, own: Sequence[torch.Tensor]) -> bool:
    """Whether a value is more than nothing, zeros and copies of one's own tensors."""
    if isinstance(value, torch.Tensor):
        return bool(value.any()) and not any(
            t.dtype == value.dtype and torch.equal(t, value) for t in own
        )
    if isinstance(value, Mapping):
        return any(_adds(entry, own) for entry in value.values())
    if isinstance(value, (list, tuple)):
        # a number in a list says where it stands, be it 0
        return any(_adds(entry, own) or isinstance(entry, (int, float)) for entry in value)
    return bool(value)


def missed_point(cases: Iterable[CaseVerdict]) -> CaseVerdict | None:
    """The first case that shows that an answer misses the point of its exercise."""
    return next((case for case in cases if case.misses_point), None)


def score(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """The points that a failed answer earns.

    Args:
        exercise: the exercise.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    if any(case.diagnosis in _WORTHLESS for case in cases):
        return 0.0
    asking = {(case.n, case.name) for case in inputs if asks(exercise, case)}
    sizes = {n for n, _ in asking}
    earned = possible = 0
    for case in cases:
        # a limit asks for something where a case of its size does
        earns = (
            case.simulated
            or (case.world_size, case.name) in asking
            or (case.is_limit and case.world_size in sizes)
        )
        earned += earns and case.passed
        possible += earns or not case.passed
    share = earned / possible if possible else 0.0
    return exercise.points * (min(share, 0.5) if missed_point(cases) else share)


# The judge. -----------------------------------------------------------------------

#: After these no further case can tell anything new, or each costs its time limit.
_FINAL = frozenset(
    {
        Diagnosis.NOT_ATTEMPTED,
        Diagnosis.FORBIDDEN_CALL,
        Diagnosis.TAMPERING,
        Diagnosis.TIMEOUT,
    }
)

#: How much longer than a call hundreds of simulated ranks may take, one after the other.
_CROWD = 6

#: The part of its time that a call may compute or sleep; it is for waiting, on a busy machine.
_EFFORT = 0.2


#: Orders of arrival that are tried of the first case of a world size that has several.
_ORDERS = 12

#: The same of further cases, whose data differ and seldom their orders.
_FEW_ORDERS = 2

#: Orders that are tried to find one that passes, where the first does not.
_ORDERS_TO_PASS = 6

#: How wildcards are matched in the first run of a case.
_USUAL = WildcardPolicy()

#: A run of a case, and what is made of it.
_Run = tuple[Outcome, CaseVerdict, JudgedCase]


@dataclass(frozen=True)
class Settings:
    """How to judge.

    Attributes:
        seed: of the inputs.
        world_sizes: judge at these only; ``None`` is what each exercise says.
        seconds: wall clock that one call may take.
        memory: bytes that a rank may allocate.
        first_failure: stop there; the score is then of no use.
        until_hint: stop when all is known that a hint is chosen by; the verdict's
            message and hint are those of a whole check, its score is of no use.
        patience: seconds that an exercise may take in all; cases that would
            start later fail.
        answer: bytes of tensors that a rank may send back.
    """

    seed: int
    world_sizes: tuple[int, ...] | None = None
    seconds: float = DEFAULTS.call
    memory: int = DEFAULTS.rank_memory
    first_failure: bool = False
    until_hint: bool = False
    patience: float = math.inf
    answer: int = DEFAULTS.answer


class Judge:
    """Judges submissions against exercises.

    Args:
        launcher: starts the ranks.
        settings: seed, sizes and limits.
    """

    def __init__(self, launcher: Launcher, settings: Settings) -> None:
        self._launcher = launcher
        self._settings = settings

    @property
    def backend(self) -> str:
        """What the ranks speak."""
        return self._launcher.setting.backend

    def judge(self, exercise: Exercise, submission: Submission) -> ExerciseVerdict:
        """The verdict on one exercise of a submission; never raises for what a student did."""
        started = time.monotonic()
        verdict = self._judge(exercise, submission)
        return replace(verdict, seconds=round(time.monotonic() - started, 3))

    def _judge(self, exercise: Exercise, submission: Submission) -> ExerciseVerdict:
        absent = _absent(exercise, submission)
        if absent is not None:
            return self._verdict(exercise, Status.FAILED, (), absent)
        least, most = min(exercise.world_sizes), self._launcher.largest
        sizes = [n for n in self._settings.world_sizes or exercise.world_sizes if n >= least]
        possible = [n for n in sizes if most is None or n <= most]
        if not possible:
            message = f"needs at least {least} ranks" + f"; there can be {most} here" * bool(sizes)
            return self._verdict(exercise, Status.SKIPPED, (), message=message)
        try:
            return self._run(exercise, submission, possible)
        except (WorldError, OSError) as error:
            why = shortage(error) if isinstance(error, OSError) else error
            message = f"the grader failed, not the answer: {why}"
            return self._verdict(exercise, Status.ERROR, (), message=message)
        finally:
            self._launcher.settle()

    def _run(
        self, exercise: Exercise, submission: Submission, sizes: Sequence[int]
    ) -> ExerciseVerdict:
        plan = {n: exercise.cases(self._settings.seed, n) for n in sizes}
        found = _Findings(time.monotonic() + self._settings.patience)
        # what a world being made sends would be counted as the other's
        ahead = not self._launcher.setting.sealed
        with _Worlds(self._open(exercise, submission), sizes, ahead) as worlds:
            if exercise.compiled:
                native = self._compile(exercise, worlds, sizes[0])
                if not native.library:
                    return self._uncompiled(exercise, native)
                worlds.library = native.library
            for n, cases in plan.items():
                right = self._run_cases(exercise, cases, worlds, found)
                if exercise.limits and len(right) < len(cases):
                    right = _telling(exercise, cases, right)
                for limit in exercise.limits:
                    verdict, seen = assess_limit(limit, n, right, found.verdicts)
                    found.verdicts.append(verdict)
                    found.see(seen)
                found.end(n)
                if found.known and self._settings.until_hint:
                    break
        if exercise.growth is not None and self._settings.world_sizes is None:
            found.verdicts += self._grow(exercise, submission, found)
        found.verdicts = [
            verdict if verdict.passed else with_source(verdict, submission.quote)
            for verdict in found.verdicts
        ]
        inputs = [case for cases in plan.values() for case in cases]
        source = tuple(submission.outlines.get(exercise.name, ()))
        return self._conclude(exercise, inputs, found, source)

    def _grow(
        self, exercise: Exercise, submission: Submission, found: _Findings
    ) -> list[CaseVerdict]:
        """Judge an answer that is right on real ranks on many simulated ones."""
        failed = next((verdict for verdict in found.verdicts if not verdict.passed), None)
        left = found.deadline - time.monotonic()
        return grown(
            self._launcher,
            exercise,
            submission.program,
            self._settings.seed,
            max(0.0, min(self._settings.seconds * _CROWD, left)),
            self._settings.memory,
            failed,
        )

    def _compile(self, exercise: Exercise, worlds: _Worlds, n: int) -> Native:
        run, workshop = partial(worlds.run, n), self._launcher.workshop
        return build(exercise, run, workshop, n, self._settings.seconds)

    def _uncompiled(self, exercise: Exercise, native: Native) -> ExerciseVerdict:
        """The verdict on an answer of which there is nothing to run."""
        if native.unavailable:
            return self._verdict(exercise, Status.SKIPPED, (), message=native.unavailable)
        return self._verdict(exercise, Status.FAILED, (), native.failure)

    def _run_cases(
        self, exercise: Exercise, cases: Sequence[Case], worlds: _Worlds, found: _Findings
    ) -> list[tuple[Case, Outcome]]:
        """Judge the cases of one world size; those that are right, with what came of them."""
        verdicts: dict[int, CaseVerdict] = {}
        judged: dict[int, JudgedCase] = {}
        right: dict[int, tuple[Case, Outcome]] = {}
        turns = CaseOrder(cases)
        for i, case in turns:
            if found.stop is not None:
                verdicts[i] = not_run(case, found.stop)
                continue
            if time.monotonic() > found.deadline:
                found.stop = verdicts[i] = too_late(case, self._settings.patience)
                continue
            outcome, verdict, judged[i] = self._run_case(exercise, case, worlds, found)
            verdicts[i] = verdict
            found.failed |= not verdict.passed
            if verdict.passed:
                right[i] = (case, outcome)
                if exercise.remark is not None and not found.remark:
                    found.remark = exercise.remark(case, outcome.trace)
            elif verdict.diagnosis in _FINAL or self._settings.first_failure:
                found.stop = verdict
            for j, other in turns.give_up(verdict):
                verdicts[j] = not_run(other, verdict)
        # they may have been run in another order
        found.verdicts += [verdicts[i] for i in sorted(verdicts)]
        for i in sorted(judged):
            found.see(judged[i])
        return [right[i] for i in sorted(right)]

    def _run_case(self, exercise: Exercise, case: Case, worlds: _Worlds, found: _Findings) -> _Run:
        outcome = worlds.run(case.n, _job(exercise, case, self._settings))
        first = outcome, *assess(exercise, case, outcome)
        if outcome.trace.choices and _worth_exploring(first, found):
            first = self._explore(exercise, case, worlds, found, first)
        _, verdict, _ = first
        if (
            verdict.passed
            and not verdict.orders
            and exercise.same_bits
            and rounding(exercise, case)
        ):
            again = worlds.run(case.n, _job(exercise, case, self._settings))
            return outcome, *assess_again(exercise, case, outcome, again)
        return first

    def _explore(
        self, exercise: Exercise, case: Case, worlds: _Worlds, found: _Findings, first: _Run
    ) -> _Run:
        """Run a case in other orders of arrival: it must be right in all of them.

        If the first run is wrong, one that is right is looked for, to name the choice
        that decides.
        """
        most = _FEW_ORDERS if case.n in found.explored else _ORDERS
        if not first[1].passed:
            most = _ORDERS_TO_PASS
        exploration = Exploration(most, self._settings.seconds)
        exploration.add(first[0].trace)
        right, wrong = ([first], []) if first[1].passed else ([], [first])
        while not (right and wrong) and (policy := exploration.next()) is not None:
            again = worlds.run(case.n, _job(exercise, case, self._settings, policy))
            exploration.add(again.trace)
            if right:
                verdict, seen = assess_again(exercise, case, right[0][0], again)
            else:
                verdict, seen = assess(exercise, case, again, repeated=True)
            (right if verdict.passed else wrong).append((again, verdict, seen))
        orders = exploration.orders
        if wrong:
            outcome, verdict, seen = wrong[0]
            race = named_race(outcome.trace, [run.trace for run, _, _ in right], orders)
            return outcome, replace(verdict, message=f"{verdict.message}{race}"), seen
        if orders.known == 1:
            return first
        found.explored.add(case.n)
        outcome, verdict, seen = first
        return outcome, replace(verdict, orders=orders), seen

    def _open(self, exercise: Exercise, submission: Submission) -> Callable[[int], World]:
        subgroups = exercise.allowed is None or "new_group" in exercise.allowed

        def open_world(n: int) -> World:
            return ProcessWorld(
                self._launcher,
                n,
                submission.program,
                self._settings.memory,
                subgroups,
                min(self._settings.patience, SETUP_SECONDS),
            )

        return open_world

    def _conclude(
        self,
        exercise: Exercise,
        inputs: Sequence[Case],
        found: _Findings,
        source: tuple[Outline, ...],
    ) -> ExerciseVerdict:
        cases = found.verdicts
        failed = next((case for case in cases if not case.passed), None)
        if failed is None:
            return self._verdict(
                exercise, Status.PASSED, cases, message=found.remark, score=exercise.points
            )
        failure = Failure(failed.diagnosis or Diagnosis.WRONG_VALUE, _told(exercise, failed, cases))
        return self._verdict(
            exercise,
            Status.FAILED,
            cases,
            failure,
            score=score(exercise, inputs, cases),
            hint=choose_hint(exercise, failure.diagnosis, Evidence(tuple(found.judged), source)),
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


#: World sizes that have to fail before all is known that a hint is chosen by.
_TELLING_SIZES = 2


@dataclass
class _Findings:
    """What is known of an answer so far.

    Attributes:
        deadline: when no further case is started, on the monotonic clock.
        verdicts: on the cases and limits, in the order of the exercise.
        judged: what a hint is chosen by.
        failing: sizes of worlds of several ranks that have failed.
        failed: whether a case has failed.
        explored: world sizes at which many orders of arrival have been tried.
        stop: the verdict after which nothing more is run.
        remark: on the first right run of which there is something to remark.
    """

    deadline: float
    verdicts: list[CaseVerdict] = field(default_factory=list)
    judged: list[JudgedCase] = field(default_factory=list)
    failing: int = 0
    failed: bool = False
    explored: set[int] = field(default_factory=set)
    stop: CaseVerdict | None = None
    remark: str = ""

    @property
    def known(self) -> bool:
        """Whether enough is known to choose a hint; what comes later is not kept for it."""
        return self.stop is not None or self.failing >= _TELLING_SIZES

    def see(self, seen: JudgedCase | None) -> None:
        """Keep what was judged."""
        if seen is not None and self.failing < _TELLING_SIZES:
            self.judged.append(seen)

    def end(self, n: int) -> None:
        """A world size has been judged whole."""
        if n > 1 and any(one.case.n == n and not one.passed for one in self.judged):
            self.failing += 1


class _Worlds:
    """The worlds of one check, each started while the one before is at work, if ``ahead``."""

    def __init__(
        self, open_world: Callable[[int], World], sizes: Sequence[int], ahead: bool
    ) -> None:
        self._open = open_world
        self._ahead = ahead
        self._coming = list(sizes)
        self._worlds: dict[int, World] = {}
        #: what jobs call, if it is not the program itself
        self.library = ""

    def run(self, n: int, job: Job) -> Outcome:
        """Run a job on a world of ``n`` ranks that has seen no failure."""
        for size in (n, *self._following(n)):
            world = self._worlds.get(size)
            if world is None or not world.usable:
                self._worlds[size] = self._open(size)
        return self._worlds[n].run(replace(job, library=self.library))

    def _following(self, n: int) -> list[int]:
        """The next size, once; the worlds before ``n`` are done with."""
        index = self._coming.index(n)
        for size in self._coming[:index]:
            self._worlds.pop(size).close()
        self._coming = self._coming[index:]
        coming = self._coming[1:2] if self._ahead else []
        return [size for size in coming if size not in self._worlds]

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


def _worth_exploring(first: _Run, found: _Findings) -> bool:
    """Whether other orders of a case's messages would tell anything that is reported."""
    _, verdict, _ = first
    # of failures the first one is reported, and with it the choice that decides
    return verdict.passed or not (found.failed or verdict.diagnosis in _FINAL)


def _telling(
    exercise: Exercise, cases: Sequence[Case], right: list[tuple[Case, Outcome]]
) -> list[tuple[Case, Outcome]]:
    """The right runs that the traffic of an answer can be judged by.

    Where some cases of a size ask for something and the answer passes the others only, its
    traffic is that of doing nothing.
    """
    if not any(asks(exercise, case) for case in cases):
        return right
    return [(case, outcome) for case, outcome in right if asks(exercise, case)]


def _told(exercise: Exercise, failed: CaseVerdict, cases: Sequence[CaseVerdict]) -> str:
    """What is wrong first, and whether the answer misses the point of the exercise."""
    if failed.diagnosis is Diagnosis.NOT_ATTEMPTED:
        return "not written yet"
    # a limit's own name stands in its message
    name = "" if failed.bounds else f"{failed.name}: "
    # a plain function is called on one rank, which says nothing
    world = ranks(failed.world_size, failed.simulated) + ", "
    found = f"{world if exercise.world_sizes != (1,) else ''}{name}{failed.message}"
    missed = missed_point(cases)
    if missed is None:
        return found
    if not missed.bounds:
        reason = "This is the point of the exercise"
    elif all(case.passed or case.is_limit or case.simulated for case in cases):
        reason = f"Right values, but {missed.bounds[0].missed}: that is the point of this exercise"
    else:
        reason = f"There are also {missed.bounds[0].missed}, the point of this exercise"
    return f"{found}\n{reason}, so it earns at most half its points."


def _job(
    exercise: Exercise, case: Case, settings: Settings, policy: WildcardPolicy = _USUAL
) -> Job:
    return Job(
        entry=exercise.function,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.allowed,
        policy=policy,
        seconds=settings.seconds,
        effort=settings.seconds * _EFFORT,
        answer_limit=settings.answer,
    )
