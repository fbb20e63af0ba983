"""The judge: from an exercise, a submission and a launcher to the verdict."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from grader.core.errors import WorldError, shortage
from grader.core.outline import Outline, about_hash_seeds
from grader.core.program import packed_by_value
from grader.core.resource_limits import DEFAULTS
from grader.core.source_locations import with_source
from grader.core.values import describe, tensors_in
from grader.core.verdict import (
    CaseVerdict,
    Diagnosis,
    ExerciseVerdict,
    Failure,
    Gravity,
    Site,
    Status,
    gravest,
)
from grader.exercise.cases import Case
from grader.exercise.declaration import Evidence, Exercise, JudgedCase
from grader.exercise.hints import choose_hint
from grader.judge.assessment import (
    assess,
    assess_again,
    assess_limit,
    not_run,
    ranks,
    rounding,
    too_late,
)
from grader.judge.mistakes import recognised
from grader.judge.simulated_checks import grown, grown_cases
from grader.launch.cpp_build import Built, CppBuilder, CppSource, missing
from grader.launch.launchers import Launcher
from grader.launch.simulation import SimulationProcess
from grader.launch.simulation_world import SimulationWorld
from grader.launch.world import Job, Outcome, World, WorldFactory, WorldSpec
from grader.launch.world_factories import ProcessWorldFactory
from grader.submission.submission import Submission
from grader.trace.trace import Trace
from grader.trace.wildcard_schedules import Exploration, WildcardPolicy, named_race

__all__ = ["Count", "Judge", "Native", "Settings", "asks", "is_code", "missed_point", "score"]


# The score: an answer's share of the cases that ask for something. -----------------
#
# A case *asks for nothing* if a function that does nothing would pass it: there is one rank in an
# exercise about communication, the tensors are empty, or a shift is by 0.  Such a case is run and
# must pass, and costs as much as any other if it does not; but it earns nothing.  Which cases these
# are follows from the oracle, so that no exercise has to declare it.

#: The diagnoses that cost the whole exercise.
_WORTHLESS = frozenset(
    {Diagnosis.NOT_ATTEMPTED, *(one for one in Diagnosis if one.gravity is Gravity.WORTHLESS)}
)

#: The largest share of the points that an answer earns if it misses the point of its exercise, and
#: if it hangs at any size.  One that is only slow is some use, and one that hangs is none.
_MISSES_POINT, _HANGS = 0.5, 0.25


def asks(exercise: Exercise, case: Case) -> bool:
    """Return whether a function that does nothing would fail a case.

    It would pass where every rank has to hold only what it was given, zeros, or nothing at all,
    and the record of a run without a message proves no mistake; where the argument has to be
    refused, as a function that always raises does; and on one rank, which has no other rank to
    communicate with.
    """
    if case.n == 1 and _communicates(exercise):
        return False
    expected = list(exercise.values.expected(case))
    if any(_is_new(exercise, case, rank, expected[rank]) for rank in case.ranks):
        return True
    silence = Trace(((),) * case.n)
    return exercise.traffic.proof is not None and exercise.traffic.proof(case, silence) is not None


def _communicates(exercise: Exercise) -> bool:
    """Return whether ranks have to communicate, and not each compute its result alone."""
    most = max(exercise.world_sizes)
    if most == 1:
        return False
    bounds = [
        (limit.relation, limit.asked(case))
        for case in (exercise.cases(0, most) if exercise.traffic.limits else [])
        for limit in exercise.traffic.limits
        if limit.applies(case)
    ]
    return not bounds or set(bounds) != {("=", 0)}


def _is_new(exercise: Exercise, case: Case, rank: int, expected: Any) -> bool:
    """Return whether a rank has to hold something that it was not given."""
    if expected == {"raises": True}:
        return False
    own = (
        tensors_in(list(case.arguments(rank)))
        if exercise.values.result is None
        else tensors_in(case.columns[exercise.values.result][rank])
    )
    return _adds(expected, list(own))


def _adds(value: Any, own: Sequence[torch.Tensor]) -> bool:
    """Return whether a value is more than nothing, zeros and copies of the rank's tensors."""
    if isinstance(value, torch.Tensor):
        return bool(value.any()) and not any(
            t.dtype == value.dtype and torch.equal(t, value) for t in own
        )
    if isinstance(value, Mapping):
        return any(_adds(entry, own) for entry in value.values())
    if isinstance(value, (list, tuple)):
        # in a list, even the number 0 is information
        return any(_adds(entry, own) or isinstance(entry, (int, float)) for entry in value)
    return bool(value)


def missed_point(cases: Iterable[CaseVerdict]) -> CaseVerdict | None:
    """Return the first case that shows that an answer misses the point of its exercise."""
    return next((case for case in cases if case.misses_point), None)


def score(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """Return the points that a failed answer earns.

    Args:
        exercise: the exercise.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    return exercise.points * min(_share(exercise, inputs, cases), _largest_share(cases))


def _share(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """Return the share of the cases passed, of those that ask for something."""
    inputs = list(inputs)
    asking = {(case.n, case.name) for case in inputs if asks(exercise, case)}
    sizes, drawn = {n for n, _ in asking}, {case.n for case in inputs}
    earned = possible = 0
    for case in cases:
        # a limit asks for something where a case of its size does
        earns = (
            case.world_size not in drawn  # of the growth, on many simulated ranks
            or (case.world_size, case.name) in asking
            or (case.is_limit and case.world_size in sizes)
        )
        earned += earns and case.passed
        possible += earns or not case.passed
    return earned / possible if possible else 0.0


def _largest_share(cases: Sequence[CaseVerdict]) -> float:
    """Return the largest share of the points that an answer with these verdicts may earn."""
    if any(case.diagnosis in _WORTHLESS for case in cases):
        return 0.0
    if any(case.gravity == Gravity.HANGS for case in cases):
        return _HANGS
    return _MISSES_POINT if missed_point(cases) else 1.0


# An answer that is C++ source: fetched from a rank, compiled, and called like any other. ---

#: Comments of C++, includes, and the stub of the chapter: all that is no answer.
_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|^\s*#\s*include[^\n]*|^\s*raise NotImplementedError\s*$",
    re.S | re.M,
)

#: The marks around a solution, which the instructor's edition has inside the string.
_SOLUTION_MARKS = re.compile(r"^### (?:BEGIN|END) SOLUTION\n", re.M)


@dataclass(frozen=True)
class Native:
    """The result of building an answer's C++ source.

    Attributes:
        library: the path of the library; empty if there is none.
        failure: why there is none, where that is the answer's fault.
        unavailable: why there is none, where this machine cannot compile anything.
    """

    library: str = ""
    failure: Failure | None = None
    unavailable: str = ""


def _build(
    exercise: Exercise,
    run: Callable[[Job], Outcome],
    cpp_builder: Callable[[], CppBuilder],
    size: int,
    seconds: float,
) -> Native:
    """Ask a rank for the text, and build it.

    Args:
        exercise: the exercise; its ``compiled`` names the function that the text must define.
        run: runs a job in the answer's first world.
        cpp_builder: returns the builder for these ranks.
        size: the size of that world.
        seconds: the time limit of its ranks.
    """
    outcome = run(
        Job(exercise.name, ((),) * size, adapter=packed_by_value(_itself), seconds=seconds)
    )
    if outcome.failure is not None:
        return Native(failure=outcome.failure)
    text = outcome.results[0].value
    name = exercise.name
    if not isinstance(text, str):
        told = f"{name} is {describe(text)}; a str that holds C++ source is needed"
        return Native(failure=Failure(Diagnosis.WRONG_TYPE, told))
    if not is_code(text):
        return Native(failure=Failure(Diagnosis.NOT_ATTEMPTED, "not written yet"))
    unavailable = missing()
    if unavailable:
        return Native(unavailable=unavailable)
    source = CppSource(
        name, _SOLUTION_MARKS.sub("", text), exercise.function, len(exercise.parameters)
    )
    built = cpp_builder().build(source)
    if built.library:
        return Native(library=built.library)
    return Native(failure=_compile_failure(source, built))


def is_code(text: str) -> bool:
    """Return whether a text in C++ is more than comments and the stub of the chapter."""
    return bool(_NO_CODE.sub("", text).strip())


def _itself(value: Any) -> Any:
    return value


def _compile_failure(source: CppSource, built: Built) -> Failure:
    if built.late:
        return Failure(Diagnosis.TIMEOUT, f"{source.name}: {built.complaint}")
    told = built.complaint[:500]
    if built.line is None:
        return Failure(Diagnosis.SYNTAX_ERROR, f"{source.name} does not compile: {told}")
    lines = source.text.splitlines()
    code = lines[built.line - 1].strip()[:200] if 0 < built.line <= len(lines) else ""
    quoted = f" ({code})" if code else ""
    site = Site(source.name, built.line)
    message = f"{source.name} does not compile, line {built.line} of the text{quoted}: {told}"
    return Failure(Diagnosis.SYNTAX_ERROR, message, None, site)


# The order in which the cases of an answer are run. -------------------------------

#: Deadlocks in a row after which the order is reversed; each costs a new world.
_HOPELESS = 2


class CaseOrder:
    """The order in which the cases of one world size are run, with those that are given up.

    Cases of a kind are neighbours.  After two deadlocks in a row the rest is run from its other
    end, so that other kinds are run as well; at the next deadlock the remaining cases are given
    up, since they would probably end the same way.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._left = deque(enumerate(cases))
        self._stuck = 0
        self._backwards = False

    def __iter__(self) -> Iterator[tuple[int, Case]]:
        while self._left:
            yield self._left.pop() if self._backwards else self._left.popleft()

    def give_up(self, verdict: CaseVerdict) -> list[tuple[int, Case]]:
        """Return the cases that need not be run after this verdict on the last one."""
        given_up: list[tuple[int, Case]] = []
        if verdict.diagnosis is not Diagnosis.DEADLOCK:
            self._stuck = 0
        elif self._backwards:
            given_up = list(self._left)
            self._left.clear()
        else:
            self._stuck += 1
            self._backwards = self._stuck == _HOPELESS
        return given_up


# The judge. -----------------------------------------------------------------------

#: Diagnoses after which further cases show nothing new, or each takes its whole time limit.
_FINAL = frozenset(
    {
        Diagnosis.NOT_ATTEMPTED,
        Diagnosis.FORBIDDEN_CALL,
        Diagnosis.TAMPERING,
        Diagnosis.MALFORMED_REPORT,
        Diagnosis.TIMEOUT,
    }
)

#: The time limit of a simulation as a multiple of a call's, since its ranks run in turn.
_CROWD = 30

#: The same of a call in which a rank is killed or late: the others have to wait for it, or until it
#: counts as dead; and of one in which ranks pause, for which the judge draws much and waits.
_PATIENT = 3


#: Orders of arrival tried of the first case of a world size that has several.
_ORDERS = 12

#: Orders tried of further cases, in which the data differ and the orders seldom do.
_FEW_ORDERS = 2

#: Orders tried to find one that passes, where the first does not.
_ORDERS_TO_PASS = 6

#: How wildcards are matched in the first run of a case.
_USUAL = WildcardPolicy()

#: Is told how many cases are judged, of how many.
Count = Callable[[int, int], None]

#: A run of a case, the verdict on it, and the evidence for hints.
_Run = tuple[Outcome, CaseVerdict, JudgedCase]


@dataclass(frozen=True)
class Settings:
    """Seed, sizes, limits and backend of a check.

    Attributes:
        seed: the seed of the inputs, and of the random numbers that ranks draw.
        world_sizes: the sizes to judge at; None for those of each exercise.
        seconds: processor time that a rank may use in one call, or that all may sleep.
        memory: bytes that a rank may allocate.
        first_failure: whether to stop at the first failure; the score is then meaningless.
        until_hint: whether to stop when two sizes have failed, which mostly show what a whole
            check would; a graver fault of a larger size is not found, and the score is
            meaningless.
        patience: seconds that an exercise may take in all; cases that would
            start later fail.
        answer: bytes of tensors that a rank may send back.
        backend: what carries the messages, see :mod:`grader.launch.backends`.
    """

    seed: int
    world_sizes: tuple[int, ...] | None = None
    seconds: float = DEFAULTS.call
    memory: int = DEFAULTS.rank_memory
    first_failure: bool = False
    until_hint: bool = False
    patience: float = math.inf
    answer: int = DEFAULTS.answer
    backend: str = "gloo"


def _silent(done: int, of: int) -> None:
    pass


class Judge:
    """The judge of submissions.

    Args:
        launcher: starts the ranks.
        settings: seed, sizes and limits.
        worlds: opens the worlds that answers are judged on; processes on the backend of the
            settings, unless another kind is given.

    Raises:
        RequestError: the backend cannot be used here; the message says the mend.
    """

    def __init__(
        self, launcher: Launcher, settings: Settings, worlds: WorldFactory | None = None
    ) -> None:
        self._launcher = launcher
        self._settings = settings
        self._worlds = worlds or ProcessWorldFactory(settings.backend)

    @property
    def backend(self) -> str:
        """The name of the backend."""
        return self._settings.backend

    def judge(
        self, exercise: Exercise, submission: Submission, count: Count | None = None
    ) -> ExerciseVerdict:
        """Return the verdict on one exercise; a mistake of the student's never raises.

        Args:
            exercise: the exercise.
            submission: has the answer.
            count: is told how many of how many cases are judged, as it goes on.
        """
        started = time.monotonic()
        with _one_thread():
            verdict = self._judge(exercise, submission, count or _silent)
        return replace(verdict, seconds=round(time.monotonic() - started, 3))

    def _judge(self, exercise: Exercise, submission: Submission, count: Count) -> ExerciseVerdict:
        absent = _absent(exercise, submission)
        if absent is not None:
            return self._verdict(exercise, Status.FAILED, (), absent)
        least, most = min(exercise.world_sizes), self._worlds.largest(self._launcher)
        sizes = [n for n in self._settings.world_sizes or exercise.world_sizes if n >= least]
        possible = [n for n in sizes if most is None or n <= most]
        if not possible:
            message = f"needs at least {least} ranks" + f"; there can be {most} here" * bool(sizes)
            return self._verdict(exercise, Status.SKIPPED, (), message=message)
        try:
            return self._run(exercise, submission, possible, count)
        except (WorldError, OSError) as error:
            why = shortage(error) if isinstance(error, OSError) else error
            message = f"the grader failed, not the answer: {why}"
            return self._verdict(exercise, Status.ERROR, (), message=message)
        finally:
            self._launcher.settle()

    def _run(
        self, exercise: Exercise, submission: Submission, sizes: Sequence[int], count: Count
    ) -> ExerciseVerdict:
        plan = {n: exercise.cases(self._settings.seed, n) for n in sizes}
        inputs = [case for cases in plan.values() for case in cases]
        obstacle = self._worlds.obstacle(exercise, inputs)
        if obstacle:
            return self._verdict(exercise, Status.SKIPPED, (), message=obstacle)
        grows = exercise.traffic.growth is not None and self._settings.world_sizes is None
        limits = {
            n: [one for one in exercise.traffic.limits if any(map(one.applies, cases))]
            for n, cases in plan.items()
        }
        total = sum(map(len, plan.values())) + sum(map(len, limits.values()))
        total += grown_cases(exercise) if grows else 0
        count(0, total)
        found = _Findings(
            time.monotonic() + self._settings.patience, lambda done: count(done, total)
        )
        source = tuple(submission.outlines.get(exercise.name, ()))
        hashing = exercise.name in submission.hashing
        weighed = {case.n for case in inputs if any(pause.weighs for pause in case.pauses)}
        open_world = self._open(exercise, submission, found.deadline, weighed)
        simulate = partial(self._simulate, submission)
        with _Worlds(open_world, simulate, sizes, hashing) as worlds:
            if exercise.compiled:
                native = self._compile(exercise, worlds, sizes[0])
                if not native.library:
                    return self._uncompiled(exercise, native)
                worlds.library = native.library
            for n, cases in plan.items():
                if found.failing and self._settings.until_hint:
                    worlds.expect_the_end()
                right = self._run_cases(exercise, cases, worlds, found, source)
                if limits[n] and len(right) < len(cases):
                    right = _telling(exercise, cases, right)
                for limit in limits[n]:
                    verdict, seen = assess_limit(limit, n, right, found.verdicts)
                    found.verdicts.append(verdict)
                    found.see(seen)
                found.judged_more(len(limits[n]))
                found.end(n)
                if found.known and self._settings.until_hint:
                    break
        if grows:
            found.verdicts += self._grow(exercise, submission, found)
        found.verdicts = [
            verdict
            if verdict.passed
            else with_source(_with_limit(verdict, exercise, self._settings), submission.quote)
            for verdict in found.verdicts
        ]
        return self._conclude(exercise, inputs, found, source)

    def _grow(
        self, exercise: Exercise, submission: Submission, found: _Findings
    ) -> list[CaseVerdict]:
        """Judge an answer that is right on real ranks on many simulated ones."""
        failed = gravest(found.verdicts)
        left = found.deadline - time.monotonic()
        return grown(
            self._launcher,
            exercise,
            submission.program,
            self._settings.seed,
            max(0.0, min(self._settings.seconds * _CROWD, left)),
            self._settings.memory,
            failed,
            found.judged_more,
        )

    def _compile(self, exercise: Exercise, worlds: _Worlds, n: int) -> Native:
        run, cpp_builder = partial(worlds.run, n), self._launcher.cpp_builder
        return _build(exercise, run, cpp_builder, n, _by_the_clock(self._settings, n))

    def _uncompiled(self, exercise: Exercise, native: Native) -> ExerciseVerdict:
        """Return the verdict on an answer that could not be built."""
        if native.unavailable:
            return self._verdict(exercise, Status.SKIPPED, (), message=native.unavailable)
        return self._verdict(exercise, Status.FAILED, (), native.failure)

    def _run_cases(
        self,
        exercise: Exercise,
        cases: Sequence[Case],
        worlds: _Worlds,
        found: _Findings,
        source: Sequence[Outline],
    ) -> list[tuple[Case, Outcome]]:
        """Judge the cases of one world size; return those that are right, with their outcomes."""
        verdicts: dict[int, CaseVerdict] = {}
        judged: dict[int, JudgedCase] = {}
        right: dict[int, tuple[Case, Outcome]] = {}
        order = CaseOrder(cases)
        for i, case in order:
            if found.stop is not None:
                verdicts[i] = not_run(case, found.stop)
                continue
            if time.monotonic() > found.deadline:
                found.stop = verdicts[i] = too_late(case, self._settings.patience)
                continue
            outcome, verdict, judged[i] = self._run_case(exercise, case, worlds, found)
            if worlds.hashing and not verdict.passed:
                outcome, verdict, judged[i] = self._run_with_one_hash_seed(
                    exercise, case, worlds, found, (outcome, verdict, judged[i]), source
                )
            verdicts[i] = verdict
            found.judged_more(1)
            found.gravity = max(found.gravity, judged[i].gravity)
            if verdict.passed:
                right[i] = (judged[i].case, outcome)
                # the kernel would count what a new world sends as the running world's
                if not (found.gravity or self._launcher.environment.sealed):
                    worlds.start_next()
                if not found.remark:
                    own = (
                        exercise.traffic.remark(case, outcome.trace)
                        if exercise.traffic.remark
                        else ""
                    )
                    found.remark = own or " ".join(outcome.trace.warnings)
            elif verdict.diagnosis in _FINAL or self._settings.first_failure or found.hint:
                found.stop = verdict
            for j, other in order.give_up(verdict):
                verdicts[j] = not_run(other, verdict)
        found.judged_more(sum(not verdict.judged for verdict in verdicts.values()))
        # the cases may have been run in another order
        found.verdicts += [verdicts[i] for i in sorted(verdicts)]
        for i in sorted(judged):
            found.see(judged[i])
        return [right[i] for i in sorted(right)]

    def _run_case(self, exercise: Exercise, case: Case, worlds: _Worlds, found: _Findings) -> _Run:
        outcome = worlds.run(case.n, _job(exercise, case, self._settings))
        first = outcome, *assess(exercise, case, outcome)
        if exercise.patient is not None and not found.patience_lost:
            patient = exercise.patient(first[2])
            if patient is not None:
                case = patient
                settings = replace(self._settings, seconds=2 * self._settings.seconds)
                outcome = worlds.run(case.n, _job(exercise, case, settings))
                first = outcome, *assess(exercise, case, outcome)
                found.patience_lost = exercise.patient(first[2]) is not None
        # simulated ranks have one order of arrival only
        if case.network is None and outcome.trace.choices and _worth_exploring(first, found):
            first = self._explore(exercise, case, worlds, found, first)
        _, verdict, _ = first
        if (
            verdict.passed
            and not verdict.orders
            and exercise.values.same_bits
            and rounding(exercise, case)
        ):
            again = worlds.run(case.n, _job(exercise, case, self._settings))
            return outcome, *assess_again(exercise, case, outcome, again)
        return first

    def _run_with_one_hash_seed(
        self,
        exercise: Exercise,
        case: Case,
        worlds: _Worlds,
        found: _Findings,
        failed: _Run,
        source: Sequence[Outline],
    ) -> _Run:
        """Run a case again, on ranks that share a hash seed, to see whether seeds are the cause."""
        worlds.share_hash_seed(case.n)
        again = self._run_case(exercise, case, worlds, found)
        if not again[1].passed:
            return again
        found.hint = about_hash_seeds(source)
        return failed

    def _explore(
        self, exercise: Exercise, case: Case, worlds: _Worlds, found: _Findings, first: _Run
    ) -> _Run:
        """Run a case in other orders of arrival, in all of which it must be right.

        If the first run is wrong, a right one is looked for, to name the choice that decides.
        """
        most = _FEW_ORDERS if case.n in found.explored else _ORDERS
        if not first[1].passed:
            most = _ORDERS_TO_PASS
        exploration = Exploration(most, _by_the_clock(self._settings, 1))
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

    def _open(
        self, exercise: Exercise, submission: Submission, deadline: float, weighed: Set[int]
    ) -> Callable[[Sequence[int], bool], World]:
        allowed = exercise.traffic.allowed

        def open_world(sizes: Sequence[int], hashing: bool) -> World:
            spec = WorldSpec(
                program=submission.program,
                size=sizes[-1],
                smaller=tuple(sizes[:-1]),
                memory=self._settings.memory,
                wanted={exercise.name, exercise.function},
                subgroups=allowed is None or "new_group" in allowed,
                collectives=allowed is None or bool(allowed),
                storing=exercise.traffic.store,
                seed=self._settings.seed,
                hashing=hashing,
                until=deadline,
                weighed=not weighed.isdisjoint(sizes),
            )
            return self._worlds.open(self._launcher, spec)

        return open_world

    def _simulate(self, submission: Submission, job: Job) -> Outcome:
        """Run a job that names a network, in a process of its own."""
        with SimulationProcess(self._launcher) as process:
            memory, seed = self._settings.memory, self._settings.seed
            return SimulationWorld(process, submission.program, memory, seed).run(job)

    def _conclude(
        self,
        exercise: Exercise,
        inputs: Sequence[Case],
        found: _Findings,
        source: tuple[Outline, ...],
    ) -> ExerciseVerdict:
        cases = found.verdicts
        failed = gravest(cases)
        if failed is None:
            return self._verdict(
                exercise, Status.PASSED, cases, message=found.remark, score=exercise.points
            )
        message = _told(exercise, failed, inputs, cases)
        recognise = partial(
            recognised,
            self._launcher,
            exercise,
            make_job=partial(_job, exercise, settings=self._settings),
            memory=self._settings.memory,
        )
        failure = Failure(failed.diagnosis or Diagnosis.WRONG_VALUE, message)
        return self._verdict(
            exercise,
            Status.FAILED,
            cases,
            failure,
            score=score(exercise, inputs, cases),
            hint=found.hint_on(failed)
            or choose_hint(
                exercise, failure.diagnosis, Evidence(tuple(found.judged), source), recognise
            ),
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
            others=exercise.others if status is Status.PASSED else None,
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread of this process in this context.

    The tensors of oracles are small.  On a busy machine, several threads wait for each other at
    the end of every operation, many times as long as they work.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


#: World sizes that have to fail before the hint is known.
_TELLING_SIZES = 2


@dataclass
class _Findings:
    """The findings on an answer so far.

    Attributes:
        deadline: the time on the monotonic clock after which no further case is started.
        count: is told how many cases are judged.
        done: the number of cases that are judged.
        verdicts: the verdicts on cases and limits, in the order of the exercise.
        judged: the cases from which a hint is chosen.
        here: those of the world size that is being judged.
        failing: the number of world sizes above 1 that have failed.
        gravity: how grave the gravest failure is; 0 if there is none.
        explored: world sizes at which many orders of arrival have been tried.
        stop: the verdict after which nothing more is run.
        patience_lost: whether a case was as wrong with more time, so that no other gets any.
        remark: the exercise's remark on the first right run that deserves one, or what the run
            itself gives cause to remark.
        hint: the hint that a second run has proved, after which nothing more is run.
    """

    deadline: float
    count: Callable[[int], None] = lambda done: None
    done: int = 0
    verdicts: list[CaseVerdict] = field(default_factory=list)
    judged: list[JudgedCase] = field(default_factory=list)
    here: list[JudgedCase] = field(default_factory=list)
    failing: int = 0
    gravity: int = 0
    explored: set[int] = field(default_factory=set)
    stop: CaseVerdict | None = None
    patience_lost: bool = False
    remark: str = ""
    hint: str = ""

    def hint_on(self, failed: CaseVerdict) -> str:
        """Return the hint that a second run has proved, if it is on this case."""
        stop = self.stop
        same = stop and (stop.world_size, stop.name) == (failed.world_size, failed.name)
        return self.hint if same else ""

    @property
    def known(self) -> bool:
        """Whether enough is known to choose a hint."""
        return self.stop is not None or self.failing >= _TELLING_SIZES

    def judged_more(self, cases: int) -> None:
        """Note that some more cases have been judged, or given up."""
        self.done += cases
        self.count(self.done)

    def see(self, seen: JudgedCase | None) -> None:
        """Note a judged case of the world size that is being judged."""
        if seen is not None:
            self.here.append(seen)

    def end(self, n: int) -> None:
        """Note that all cases of a world size have been judged.

        They are kept for the choice of a hint until two sizes have failed, and later if one of
        them leads the verdict.
        """
        before = max((one.gravity for one in self.judged), default=0)
        gravity = max((one.gravity for one in self.here), default=0)
        self.gravity = max(self.gravity, gravity)
        if self.failing < _TELLING_SIZES or gravity > before:
            self.judged += self.here
            self.failing += n > 1 and gravity > 0
        self.here = []


#: The largest size of an answer's first world: most wrong answers fail there.
_SMALL = 2


class _Worlds:
    """The worlds of one check.

    To start a rank costs more than most cases, so several sizes share a world, whose first ranks
    form the smaller ones.  The first is small, and only an answer that passes there is run on
    many ranks.  Once a world has failed, whose ranks cannot be used again, each size has its own.

    An answer that may depend on hashes meets ranks with other hash seeds in the last world.

    Args:
        open_world: starts a world for jobs of some sizes, in increasing order, whose ranks have
            other hash seeds or not.
        simulate: runs a job that names a network, which needs no world.
        sizes: the sizes of the jobs to come, in their order.
        hashing: whether the answer may depend on hashes.
    """

    def __init__(
        self,
        open_world: Callable[[Sequence[int], bool], World],
        simulate: Callable[[Job], Outcome],
        sizes: Sequence[int],
        hashing: bool = False,
    ) -> None:
        self._open_world = open_world
        self._hashing = hashing
        self._simulate = simulate
        self._plan = _shared(sizes)
        self._size = sizes[0]
        self._world: World | None = None
        self._next: World | None = None
        #: the library that jobs call, if they do not call the program itself
        self.library = ""

    def run(self, n: int, job: Job) -> Outcome:
        """Run a job on a world of ``n`` ranks that has seen no failure, or on simulated ranks."""
        if job.network is not None:
            return self._simulate(job)
        self._size = n
        while n not in self._plan[0]:
            self._plan.pop(0)
            self._replace(self._next)
            self._next = None
        if self._world is not None and not self._world.usable:
            self._separate(n)
        if self._world is None:
            self._world = self._open(0)
        return self._world.run(replace(job, library=self.library))

    @property
    def hashing(self) -> bool:
        """Whether the ranks of the present world have other hash seeds."""
        return self._hashing and len(self._plan) == 1 and self._world is not None

    def share_hash_seed(self, n: int) -> None:
        """Let all ranks share one hash seed from now on; jobs for ``n`` ranks come next."""
        self._hashing = False
        self._separate(n)

    def _separate(self, n: int) -> None:
        """End the present world, and give each size from ``n`` on a world of its own."""
        self._plan = _alone(self._plan)
        self._plan = self._plan[self._plan.index([n]) :]
        self.close()

    def _open(self, place: int) -> World:
        last = place == len(self._plan) - 1
        return self._open_world(self._plan[place], self._hashing and last)

    def expect_the_end(self) -> None:
        """Give each size for which no world is started its own: few are still to come."""
        if self._next is None:
            self._plan[1:] = _alone(self._plan[1:])

    def start_next(self) -> None:
        """Start the next world, where this one has come to its largest size."""
        if self._size == self._plan[0][-1] and self._next is None and len(self._plan) > 1:
            self._next = self._open(1)

    def _replace(self, world: World | None) -> None:
        if self._world is not None:
            self._world.close()
        self._world = world

    def close(self) -> None:
        """End all worlds."""
        self._replace(self._next)
        self._next = None
        self._replace(None)

    def __enter__(self) -> _Worlds:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _shared(sizes: Sequence[int]) -> list[list[int]]:
    """Return sizes grouped by the world that they share, in which they increase."""
    plan: list[list[int]] = []
    for size in sizes:
        if plan and plan[-1][-1] < size and (size <= _SMALL or plan[-1][-1] > _SMALL):
            plan[-1].append(size)
        else:
            plan.append([size])
    return plan


def _alone(plan: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return a plan in which no sizes share a world."""
    return [[size] for sizes in plan for size in sizes]


def _absent(exercise: Exercise, submission: Submission) -> Failure | None:
    """Return why a submission has nothing to run for an exercise, if it has nothing."""
    name = exercise.name
    if name in submission.broken:
        fault = submission.broken[name]
        site = Site(fault.label, fault.line)
        return Failure(Diagnosis.SYNTAX_ERROR, f"{site}: {fault.message}", None, site)
    if name not in submission.names:
        found = submission.elsewhere.get(name, "")
        told = f"{submission.label} does not define {name}{': ' if found else ''}{found}"
        return Failure(Diagnosis.MISSING, told)
    return None


def _worth_exploring(first: _Run, found: _Findings) -> bool:
    """Return whether other orders of a case's messages could change what is reported."""
    _, verdict, _ = first
    # only the failure that leads the verdict is reported, and with it the choice that decides
    leads = first[2].gravity > found.gravity
    return verdict.passed or (leads and verdict.diagnosis not in _FINAL)


def _telling(
    exercise: Exercise, cases: Sequence[Case], right: list[tuple[Case, Outcome]]
) -> list[tuple[Case, Outcome]]:
    """Return the right runs by which the traffic of an answer can be judged.

    Where some cases of a size ask for something and the answer passes only the others, its
    traffic is that of doing nothing.
    """
    if not any(asks(exercise, case) for case in cases):
        return right
    return [(case, outcome) for case, outcome in right if asks(exercise, case)]


def _by_the_clock(settings: Settings, n: int, simulated: bool = False) -> float:
    """Return the seconds that a call may take by the wall clock."""
    if simulated:
        return _CROWD * settings.seconds
    return DEFAULTS.by_the_clock(settings.seconds, n)


def _with_limit(verdict: CaseVerdict, exercise: Exercise, settings: Settings) -> CaseVerdict:
    """Return a verdict that names the limit on time, and what raises it, if the time was over."""
    if verdict.diagnosis is not Diagnosis.TIMEOUT or not verdict.judged:
        return verdict
    clock = _by_the_clock(settings, verdict.world_size, verdict.simulated)
    more = 5 * settings.seconds
    limit = (
        f"a rank may compute for {settings.seconds:g} s in one call, or all may sleep; by the clock"
        f" a call may take {clock:g} s. --seconds {more:g} allows five times as much, and so does"
        f" check({exercise.name}, seconds={more:g})"
    )
    return replace(verdict, detail=(*verdict.detail, limit))


def _told(
    exercise: Exercise, failed: CaseVerdict, inputs: Sequence[Case], cases: Sequence[CaseVerdict]
) -> str:
    """Return what is wrong: the gravest fault, others that are independent of it, and their price.

    Args:
        exercise: the exercise.
        failed: the gravest failure.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    if failed.diagnosis is Diagnosis.NOT_ATTEMPTED:
        return "not written yet"
    told = [_found(exercise, failed)]
    missed = missed_point(cases)
    told += [
        f"Another fault, on {_found(exercise, other)}"
        for other in _others(failed, cases)
        if not other.misses_point
    ]
    hangs = failed.gravity == Gravity.HANGS
    if missed is not None:
        price = "" if hangs else ", so it earns at most half its points"
        told.append(f"{_missed(exercise, missed, failed, cases)}{price}.")
    if hangs and _share(exercise, inputs, cases) > _largest_share(cases) > 0:
        told.append("An answer that hangs earns at most a quarter of its points.")
    return "\n".join(told)


def _found(exercise: Exercise, case: CaseVerdict) -> str:
    """Return what is wrong with a case, and where."""
    # the message on a limit names it already
    name = "" if case.bounds else f"{case.name}: "
    # a plain function is called on one rank, which is not worth saying
    world = ranks(case.world_size, case.simulated) + ", "
    return f"{world if exercise.world_sizes != (1,) else ''}{name}{case.message}"


def _others(lead: CaseVerdict, cases: Sequence[CaseVerdict]) -> Iterator[CaseVerdict]:
    """Yield faults that are no consequence of the one that leads the verdict, the gravest first.

    The failures of one world size have mostly one reason: an answer that hangs on some inputs may
    end with wrong values on others.  So the gravest failure stands for its size.  A size at which
    nothing fails as gravely as at another has a fault that the graver one does not explain.
    """
    sizes: dict[tuple[bool, int], list[CaseVerdict]] = {}
    for case in cases:
        sizes.setdefault((case.simulated, case.world_size), []).append(case)
    worst = [found for found in map(gravest, sizes.values()) if found is not None]
    told = {0, lead.gravity}
    for case in sorted(worst, key=lambda case: -case.gravity):
        if case.gravity not in told:
            told.add(case.gravity)
            yield case


def _missed(
    exercise: Exercise, missed: CaseVerdict, failed: CaseVerdict, cases: Sequence[CaseVerdict]
) -> str:
    """Return that an answer misses the point of the exercise, and by what if that is not told."""
    if missed is failed and not missed.bounds:
        return "This is the point of the exercise"
    if not missed.bounds:
        return f"Another fault, on {_found(exercise, missed)}: that is the point of this exercise"
    if all(case.may_be_right for case in cases):
        return f"Right values, but {missed.bounds[0].missed}: that is the point of this exercise"
    return f"There are also {missed.bounds[0].missed}, the point of this exercise"


def _job(
    exercise: Exercise, case: Case, settings: Settings, policy: WildcardPolicy = _USUAL
) -> Job:
    return Job(
        entry=exercise.function,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.traffic.allowed,
        policy=policy,
        seconds=_by_the_clock(settings, case.n, case.network is not None)
        * (_PATIENT if case.pauses else 1),
        effort=settings.seconds * (_PATIENT if case.killed or case.late or case.pauses else 1),
        answer_limit=settings.answer,
        killed=case.killed,
        late=case.late,
        network=case.network,
        pauses=case.pauses,
    )
