"""The judge: from an exercise, a submission and a launcher to the verdict.

A check is one road: :meth:`Judge.judge` sees whether there is anything to run, and where;
:class:`_Check` judges the cases and limits of one world size after the other, then many simulated
ranks, and concludes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from grader.exercise.cases import Case
from grader.exercise.declaration import Evidence, Exercise, JudgedCase
from grader.exercise.hints import choose_hint
from grader.exercise.limits import hangs_on_nccl
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Grade, Hint, Status, gravest
from grader.judge.assessment import Measured, assess_limit, kept_trace, measure, not_run, too_late
from grader.judge.case_order import CaseOrder
from grader.judge.case_runs import CaseRun, CaseRunner
from grader.judge.cpp_answers import Preparation, compiled
from grader.judge.explanation import explain
from grader.judge.findings import Findings, SizeFindings
from grader.judge.mistakes import recognised
from grader.judge.questions import questioned
from grader.judge.scoring import earns_points, score
from grader.judge.settings import Settings, clock_seconds, explain_time_limit, make_job
from grader.judge.simulated_checks import grown, grown_cases
from grader.judge.world_factories import ProcessWorldFactory, WorldFactory
from grader.judge.worlds import WorldPool
from grader.submission.definitions import Broken
from grader.submission.submission import Submission
from headcount.core.errors import HeadcountError, WorldError, shortage
from headcount.core.semantics import Semantics
from headcount.core.source_locations import with_source
from headcount.core.verdict import Diagnosis, Failure, Site
from headcount.launch.launchers import Launcher
from headcount.launch.root_cause import not_understood
from headcount.launch.world import Job, Outcome, World, WorldSpec
from headcount.simulation.launch import SimulationProcess
from headcount.simulation.simulation_world import SimulationWorld
from headcount.trace.trace import Trace

__all__ = ["Count", "Judge", "Settings"]

#: Is called with how many cases are judged, and of how many.
Count = Callable[[int, int], None]


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
            verdict = self._judge(exercise, submission, count or _count_nothing)
        return replace(verdict, seconds=round(time.monotonic() - started, 3))

    def _judge(self, exercise: Exercise, submission: Submission, count: Count) -> ExerciseVerdict:
        exercise = _with_semantics(self._settings.semantics, exercise)
        verdict = partial(_verdict, exercise, self._settings.seed)
        if exercise.name not in submission.names:
            return verdict(Status.FAILED, failure=_absence(exercise, submission))
        least, most = min(exercise.world_sizes), self._worlds.largest(self._launcher)
        sizes = [n for n in self._settings.world_sizes or exercise.world_sizes if n >= least]
        possible = [n for n in sizes if most is None or n <= most]
        if not possible:
            message = f"needs at least {least} ranks" + f"; there can be {most} here" * bool(sizes)
            return verdict(Status.SKIPPED, message=message)
        try:
            plan = {n: exercise.cases(self._settings.seed, n) for n in possible}
            obstacle = self._worlds.obstacle(exercise, _inputs(plan))
            if obstacle:
                return verdict(Status.SKIPPED, message=obstacle)
            check = _Check(
                self._launcher, self._settings, self._worlds, exercise, submission, plan, count
            )
            found = check.run()
            broken = submission.broken.get(exercise.name)
            remark = submission.elsewhere.get(exercise.name)
            if found.nothing_done and (broken or remark):  # a stub, and beside it an answer
                return verdict(Status.FAILED, failure=_absence(exercise, submission))
            if broken:  # Jupyter runs no cell that does not parse: what was defined before stays
                place = _does_not_parse(broken).message
                remark = f"the last definition that parses is judged; {place}"
            return replace(found, message="; ".join(filter(None, (found.message, remark))))
        except (WorldError, OSError) as error:
            why = shortage(error) if isinstance(error, OSError) else error
            return verdict(Status.ERROR, message=f"the grader failed, not the answer: {why}")
        except (HeadcountError, UnicodeEncodeError):  # or a name in the request is not UTF-8
            raise
        except Exception as error:
            # all that is judged was sent by processes that run the student's code, and nothing
            # tells a lie that the judge stumbles over from a bug of the judge's
            return verdict(Status.FAILED, failure=not_understood("the answer", error))
        finally:
            self._launcher.settle()


def _count_nothing(done: int, of: int) -> None:
    pass


def _with_semantics(semantics: Semantics, exercise: Exercise) -> Exercise:
    """Return an exercise whose traffic has to keep the rules of the semantics as well."""
    if semantics is Semantics.GLOO:
        return exercise
    own = exercise.traffic.proof

    def proof(case: Case, trace: Trace) -> Failure | None:
        found = None if own is None else own(case, trace)
        return found or hangs_on_nccl(case, trace)

    # advice of the exercise's own is on hangs that the run itself shows
    advice = dict(exercise.help.advice)
    advice.pop(Diagnosis.DEADLOCK, None)
    return replace(
        exercise,
        traffic=replace(exercise.traffic, proof=proof),
        help=replace(exercise.help, advice=advice),
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


def _absence(exercise: Exercise, submission: Submission) -> Failure:
    """Return why a submission has nothing to run for an exercise, or nothing but its stub."""
    name = exercise.name
    if name in submission.broken:
        return _does_not_parse(submission.broken[name])
    has = "has only a stub of" if name in submission.names else "does not define"
    found = submission.elsewhere.get(name, "")
    message = f"{submission.label} {has} {name}{': ' if found else ''}{found}"
    return Failure(Diagnosis.MISSING, message)


def _does_not_parse(fault: Broken) -> Failure:
    site = Site(fault.label, fault.line)
    return Failure(Diagnosis.SYNTAX_ERROR, f"{site}: {fault.message}", None, site)


#: Bytes, as they come, of what ranks hold that is kept until there is a hint; it may take ten
#: times as much in memory, and right answers to an exercise have up to 3 MB.
MOST_KEPT = 32 << 20

#: The cases of an exercise by world size.
_Plan = dict[int, list[Case]]


def _inputs(plan: _Plan) -> list[Case]:
    return [case for cases in plan.values() for case in cases]


class _Check:
    """One check of one answer.

    Args:
        launcher: starts the ranks.
        settings: seed, sizes and limits.
        factory: opens the worlds of processes, or of simulated ranks.
        exercise: the exercise.
        submission: has the answer.
        plan: the cases.
        count: is told how many of how many cases are judged.
    """

    def __init__(
        self,
        launcher: Launcher,
        settings: Settings,
        factory: WorldFactory,
        exercise: Exercise,
        submission: Submission,
        plan: _Plan,
        count: Count,
    ) -> None:
        self._launcher = launcher
        self._settings = settings
        self._factory = factory
        self._exercise = exercise
        self._submission = submission
        self._program = submission.program
        self._plan = plan
        self._inputs = _inputs(plan)
        self._verdict = partial(_verdict, exercise, settings.seed)
        self._limits = {
            n: [limit for limit in exercise.traffic.limits if any(map(limit.applies, cases))]
            for n, cases in plan.items()
        }
        self._grows = exercise.traffic.growth is not None and settings.world_sizes is None
        self._deadline = time.monotonic() + settings.patience
        self._outlines = tuple(submission.outlines.get(exercise.name, ()))
        self._count = count
        self._done, self._room = 0, MOST_KEPT
        self._total = len(self._inputs) + sum(map(len, self._limits.values()))
        self._total += grown_cases(exercise) if self._grows else 0

    def run(self) -> ExerciseVerdict:
        """Judge all cases, and return the verdict.

        Raises:
            WorldError: ranks cannot be started.
            OSError: this machine lacks something.
        """
        self._count_judged(0)
        with self._world_pool() as worlds:
            preparation = self._prepare(worlds)
            if preparation.unavailable:
                return self._verdict(Status.SKIPPED, message=preparation.unavailable)
            if preparation.failure is not None:
                return self._verdict(Status.FAILED, failure=preparation.failure)
            if preparation.program is not None:
                self._program = preparation.program
                worlds.close()  # whose ranks have loaded the text
            findings = self._judge_sizes(worlds)
        verdicts = [*findings.verdicts, *(self._grow(findings) if self._grows else ())]
        found = self._conclude(findings, [self._explained(verdict) for verdict in verdicts])
        if not self._settings.questions or found.nothing_done:
            return found
        run = questioned(self._exercise, self._submission, findings.evidence)
        return replace(found, questioned=run)

    def _count_judged(self, cases: int) -> None:
        """Count cases that have been judged, or given up."""
        self._done += cases
        self._count(self._done, self._total)

    # Worlds. ----------------------------------------------------------------------

    def _world_pool(self) -> WorldPool:
        return WorldPool(self._open_world, self._simulate, list(self._plan))

    def _open_world(self, sizes: Sequence[int], set_orders: bool) -> World:
        """Open a world for jobs of some sizes, in increasing order."""
        exercise = self._exercise
        allowed = exercise.traffic.allowed
        weighed = {case.n for case in self._inputs if any(pause.weighs for pause in case.pauses)}
        spec = WorldSpec(
            program=self._program,
            size=sizes[-1],
            smaller=tuple(sizes[:-1]),
            memory=self._settings.memory,
            wanted={exercise.name, exercise.function},
            subgroups=allowed is None or "new_group" in allowed,
            collectives=allowed is None or bool(allowed),
            storing=exercise.traffic.store,
            seed=self._settings.seed,
            set_orders=set_orders,
            until=self._deadline,
            weighed=not weighed.isdisjoint(sizes),
        )
        return self._factory.open(self._launcher, spec)

    def _simulate(self, job: Job) -> Outcome:
        """Run a job that names a network, in a process of its own."""
        with SimulationProcess(self._launcher) as process:
            settings, program = self._settings, self._submission.program
            return SimulationWorld(process, program, settings.memory, settings.seed).run(job)

    def _prepare(self, worlds: WorldPool) -> Preparation:
        """Compile an answer that is C++ source."""
        if not self._exercise.compiled:
            return Preparation()
        size = next(iter(self._plan))
        seconds = clock_seconds(self._settings, size)
        run, until = partial(worlds.run, size), self._settings.until
        return compiled(self._exercise, run, self._launcher, size, seconds, until)

    # Cases and limits. ------------------------------------------------------------

    def _judge_sizes(self, worlds: WorldPool) -> Findings:
        """Judge the cases of every world size, or as many as are needed to choose a hint."""
        findings = Findings()
        runner = CaseRunner(self._exercise, self._settings, worlds)
        for n in self._plan:
            if findings.failing and self._settings.until_hint:
                worlds.expect_the_end()
            findings.add(n, self._judge_size(n, worlds, runner, findings))
            if findings.decisive and self._settings.until_hint:
                break
        return findings

    def _judge_size(
        self, n: int, worlds: WorldPool, runner: CaseRunner, before: Findings
    ) -> SizeFindings:
        """Judge the cases and limits of one world size.

        Args:
            n: the size.
            worlds: the worlds of the check.
            runner: runs its cases.
            before: the findings of the sizes before.
        """
        verdicts: dict[int, CaseVerdict] = {}
        judged: dict[int, JudgedCase] = {}
        right: dict[int, tuple[Case, list[Measured | None]]] = {}
        stop, gravity, remark, hint = before.stop, before.gravity, before.remark, before.hint
        order = CaseOrder(self._plan[n])
        for i, case in order:
            if stop is not None:
                verdicts[i] = not_run(case, stop)
                continue
            if time.monotonic() > self._deadline:
                stop = verdicts[i] = too_late(case, self._settings.patience)
                continue
            found = runner.run(case, gravity)
            verdict = verdicts[i] = found.verdict
            judged[i] = self._as_evidence(found)
            self._count_judged(1)
            gravity = max(gravity, found.judged.gravity)
            if verdict.passed:
                # at once, since the record of a long run is not kept
                right[i] = (
                    found.judged.case,
                    [measure(limit, found.judged.case, found.outcome) for limit in self._limits[n]],
                )
                # the kernel would count what a new world sends as the running world's
                if not (gravity or self._launcher.environment.sealed):
                    worlds.start_next()
                remark = remark or self._remark(case, found.outcome)
            elif verdict.final or self._settings.first_failure or found.hint:
                stop, hint = verdict, found.hint
            for j, other in order.give_up(verdict):
                verdicts[j] = not_run(other, verdict)
        self._count_judged(sum(not verdict.judged for verdict in verdicts.values()))
        # the cases may have been run in another order
        on_cases = [verdicts[i] for i in sorted(verdicts)]
        on_limits = self._judge_limits(n, [right[i] for i in sorted(right)], on_cases)
        return SizeFindings(
            (*on_cases, *(verdict for verdict, _ in on_limits)),
            (
                *(judged[i] for i in sorted(judged)),
                *(seen for _, seen in on_limits if seen is not None),
            ),
            stop,
            remark,
            hint,
        )

    def _as_evidence(self, found: CaseRun) -> JudgedCase:
        """Return a judged case with what its ranks hold, while there is room for that."""
        self._room -= sum(result.nbytes for result in found.outcome.results)
        kept = replace(found.judged, trace=kept_trace(found.outcome))
        return kept if self._room >= 0 else replace(kept, actual=(), arguments=())

    def _remark(self, case: Case, outcome: Outcome) -> str:
        """Return the exercise's remark on a right run, or what the run gives cause to remark."""
        remark = self._exercise.traffic.remark
        return (remark(case, outcome.trace) if remark else "") or " ".join(outcome.trace.warnings)

    def _judge_limits(
        self,
        n: int,
        right: list[tuple[Case, list[Measured | None]]],
        verdicts: Sequence[CaseVerdict],
    ) -> list[tuple[CaseVerdict, JudgedCase | None]]:
        """Return the verdict on each limit of a world size, and the evidence if it was judged.

        Args:
            n: the size.
            right: its cases whose values were right, with what each limit says of them.
            verdicts: the verdicts on all its cases.
        """
        limits, cases = self._limits[n], self._plan[n]
        earning = partial(earns_points, self._exercise)
        if limits and len(right) < len(cases) and any(map(earning, cases)):
            # the traffic of cases that earn no points is that of doing nothing
            right = [(case, measured) for case, measured in right if earning(case)]
        found = [
            assess_limit(limit, n, [measured[k] for _, measured in right], verdicts)
            for k, limit in enumerate(limits)
        ]
        self._count_judged(len(found))
        return found

    def _grow(self, findings: Findings) -> list[CaseVerdict]:
        """Judge an answer that is right so far on many simulated ranks."""
        left = self._deadline - time.monotonic()
        return grown(
            self._launcher,
            self._exercise,
            self._submission.program,
            self._settings,
            max(0.0, min(clock_seconds(self._settings, 1, simulated=True), left)),
            gravest(findings.verdicts),
            self._count_judged,
        )

    # The verdict. -----------------------------------------------------------------

    def _explained(self, verdict: CaseVerdict) -> CaseVerdict:
        """Return a verdict with the time limit and the source lines that explain its failure."""
        if verdict.passed:
            return verdict
        limited = explain_time_limit(verdict, self._exercise, self._settings)
        return with_source(limited, self._submission.quote)

    def _conclude(self, findings: Findings, verdicts: Sequence[CaseVerdict]) -> ExerciseVerdict:
        """Return the verdict on the answer, from the verdicts on all cases and limits."""
        failed = gravest(verdicts)
        if failed is None:
            return self._verdict(
                Status.PASSED, verdicts, message=findings.remark, score=self._exercise.points
            )
        message = explain(self._exercise, failed, self._inputs, verdicts)
        failure = Failure(failed.diagnosis or Diagnosis.WRONG_VALUE, message)
        return self._verdict(
            Status.FAILED,
            verdicts,
            failure,
            score=score(self._exercise, self._inputs, verdicts),
            hint=Hint(findings.proved_hint(failed), Grade.ESTABLISHED)
            or self._choose_hint(failure.diagnosis, findings),
        )

    def _choose_hint(self, diagnosis: Diagnosis, findings: Findings) -> Hint:
        recognise = partial(
            recognised,
            self._launcher,
            self._exercise,
            make_job=partial(make_job, self._exercise, settings=self._settings),
            memory=self._settings.memory,
        )
        evidence = Evidence(tuple(findings.evidence), self._outlines)
        if (
            self._settings.semantics is not Semantics.GLOO
            and diagnosis is Diagnosis.DEADLOCK
            and evidence.here.failure is None
        ):
            # the run has ended well, so it is none of the mistakes that hang
            return choose_hint(self._exercise, diagnosis, evidence, lambda _: "")
        return choose_hint(self._exercise, diagnosis, evidence, recognise)


def _verdict(
    exercise: Exercise,
    seed: int,
    status: Status,
    cases: Sequence[CaseVerdict] = (),
    failure: Failure | None = None,
    message: str = "",
    score: float = 0.0,
    hint: Hint | None = None,
) -> ExerciseVerdict:
    """Return a verdict on an exercise; ``message`` counts where there is no failure."""
    if hint is None:
        hint = choose_hint(exercise, failure.diagnosis, None) if failure else Hint()
    return ExerciseVerdict(
        name=exercise.name,
        chapter=exercise.chapter,
        status=status,
        score=round(score, 3),
        max_score=exercise.points,
        diagnosis=failure.diagnosis if failure else None,
        message=failure.message if failure else message,
        hint=hint.text,
        hint_grade=hint.grade,
        seed=seed,
        cases=tuple(cases),
        others=exercise.others if status is Status.PASSED else None,
    )
