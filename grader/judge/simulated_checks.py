"""Checks on simulated ranks: whether an answer's cost grows with their number as it should.

Eight processes do not show what an algorithm costs on hundreds.  So an answer that is right on
real ranks is also run on many more simulated ranks, and what they hold and have sent is judged by
the same oracle and the same limits.  Rounds are not judged: they are counted in a replay of the
record (:mod:`headcount.trace.trace`), and the record of hundreds of ranks is too long to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from grader.exercise.cases import Case, Draw
from grader.exercise.declaration import Exercise
from grader.exercise.limits import Limit
from grader.exercise.verdict import CaseVerdict, Status
from grader.judge.assessment import assess, not_run
from grader.judge.settings import Settings
from headcount.core.errors import RequestError
from headcount.core.program import Program
from headcount.core.resource_limits import DEFAULTS
from headcount.launch.launchers import Launcher
from headcount.launch.world import Job
from headcount.simulation.clusters import Cluster, Flat
from headcount.simulation.launch import Simulation, simulate
from headcount.simulation.simulation_world import outcome_of

__all__ = ["SimulatedOutcome", "grown", "grown_cases", "run_grown"]

#: The quantity that a tally does not have, and a trace has.
_ROUNDS = "rounds"


@dataclass(frozen=True)
class SimulatedOutcome:
    """The outcome of an answer on simulated ranks.

    Attributes:
        case: the input.
        simulation: the run.
        verdicts: the verdicts on what the ranks hold, and on each limit except rounds.
    """

    case: Case
    simulation: Simulation
    verdicts: tuple[CaseVerdict, ...]


def grown(
    launcher: Launcher,
    exercise: Exercise,
    program: Program,
    settings: Settings,
    seconds: float,
    failed: CaseVerdict | None,
    more: Callable[[int], None] = lambda cases: None,
) -> list[CaseVerdict]:
    """Return the verdicts on an answer on as many ranks as its exercise's growth names.

    Args:
        launcher: starts the process.
        exercise: an exercise with a growth.
        program: the answer's code.
        settings: the seed of the inputs, and the limits but for that on time.
        seconds: the time limit, by the wall clock.
        failed: a case that the answer has failed before, after which nothing is run.
        more: is told how many cases that were.
    """
    growth = exercise.traffic.growth
    assert growth is not None
    if failed is None:
        n, seed, most, answer = growth.size, settings.seed, settings.memory, settings.answer
        run = run_grown(launcher, exercise, program, n, Flat(), seed, seconds, most, answer=answer)
        verdicts = list(run.verdicts)
    else:
        given_up = replace(
            not_run(_case(exercise, settings.seed, growth.size), failed), simulated=True
        )
        verdicts = [given_up]
        verdicts += [
            replace(given_up, name=limit.quantity, is_limit=True) for limit in _limits(exercise)
        ]
    more(grown_cases(exercise))
    return verdicts


def grown_cases(exercise: Exercise) -> int:
    """Return the number of verdicts that :func:`grown` gives."""
    return 1 + len(_limits(exercise)) if exercise.traffic.growth else 0


def run_grown(
    launcher: Launcher,
    exercise: Exercise,
    program: Program,
    n: int,
    cluster: Cluster,
    seed: int,
    seconds: float,
    memory: int,
    eager: int = -1,
    algorithms: Mapping[str, str] = MappingProxyType({}),
    answer: int = DEFAULTS.answer,
) -> SimulatedOutcome:
    """Run an answer on ``n`` simulated ranks, and judge what they hold and have sent.

    Args:
        launcher, exercise, program: as in :func:`grown`; of one without a growth, the first input
            is taken.
        seed, seconds, memory, answer: as in :class:`grader.judge.settings.Settings`.
        n: the number of ranks.
        cluster: gives the costs of messages.
        eager: bytes up to which a send does not wait for its receive; −1 for none.
        algorithms: by collective, the name of an algorithm other than the default.

    Raises:
        RequestError: the exercise asks what becomes of ranks that are killed, late or paused, or
            has no input for so many.
    """
    case = _case(exercise, seed, n)
    if case.killed or case.late or case.pauses or exercise.traffic.store:
        raise RequestError(f"{exercise.name} is judged by what becomes of real ranks: use `check`")
    growth = exercise.traffic.growth
    answered = growth is None or n <= growth.values
    job = Job(
        entry=exercise.name,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.traffic.allowed,
        seconds=seconds,
        answer_limit=answer,
    )
    simulation = simulate(
        launcher,
        program,
        job,
        cluster,
        eager=eager,
        counted=True,
        answered=answered,
        memory=memory,
        algorithms=algorithms,
        seed=seed,
    )
    verdict = _values(exercise, case, job, simulation, answered)
    verdicts = [verdict, *_on_limits(exercise, case, simulation, verdict)]
    return SimulatedOutcome(
        case, simulation, tuple(replace(one, simulated=True) for one in verdicts)
    )


def _case(exercise: Exercise, seed: int, n: int) -> Case:
    draw = Draw(seed, exercise.name, n)
    if exercise.traffic.growth:
        return exercise.traffic.growth.case(draw)
    case = next(iter(exercise.inputs(draw)), None)
    if case is None:
        sizes = ", ".join(map(str, exercise.world_sizes))
        raise RequestError(f"{exercise.name} has no input for {n} ranks; it has for {sizes}")
    return case


def _values(
    exercise: Exercise, case: Case, job: Job, simulation: Simulation, answered: bool
) -> CaseVerdict:
    """Return the verdict on what the ranks hold, as far as that was asked for."""
    if answered or simulation.failure is not None:
        verdict, _ = assess(exercise, case, outcome_of(simulation, job))
    else:
        verdict = CaseVerdict(case.name, case.n, Status.PASSED)
    # hundreds of rows would tell no more than the message
    return replace(verdict, traffic=None, by_rank=())


def _limits(exercise: Exercise) -> list[Limit]:
    """Return the limits that hold on simulated ranks, of an exercise that is meant for them.

    Of any other, limits may need what only real ranks record, so that `check` alone judges them.
    """
    if exercise.traffic.growth is None:
        return []
    return [limit for limit in exercise.traffic.limits if limit.quantity != _ROUNDS]


def _on_limits(
    exercise: Exercise, case: Case, simulation: Simulation, verdict: CaseVerdict
) -> Iterator[CaseVerdict]:
    for limit in filter(lambda limit: limit.applies(case), _limits(exercise)):
        one = CaseVerdict(limit.quantity, case.n, Status.FAILED, verdict.diagnosis, is_limit=True)
        if simulation.tally is None or not verdict.passed:
            message = "not judged: the run on simulated ranks did not give the right result"
            yield replace(one, message=message, judged=False)
            continue
        bound = limit.judge(case, simulation.tally)
        one = replace(one, bounds=(bound,))
        if bound.holds:
            yield replace(one, status=Status.PASSED)
        else:
            message = f"{case.name}: {bound}"
            diagnosis = limit.diagnose(bound)
            yield replace(one, diagnosis=diagnosis, message=message, misses_point=limit.point)
