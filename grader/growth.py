"""Whether an answer grows with the number of ranks as it should: on simulated ranks.

Eight processes do not show what an algorithm costs on hundreds.  So an answer
that is right on real ranks is run on simulated ones as well, many more of them,
where every message takes one unit of time; what they hold and what they have sent
is judged by the same oracle and the same limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.assess import assess
from grader.cases import Case, Draw
from grader.exercise import Exercise, Growth
from grader.program import Program
from grader.simulation.clusters import Flat
from grader.traffic.trace import Trace
from grader.turns import not_run
from grader.verdict import Bound, CaseVerdict, Status
from grader.worlds.base import Job, Outcome
from grader.worlds.crew import Launcher
from grader.worlds.simulating import Simulation, simulate

__all__ = ["UNITS", "grown", "growth_case"]

#: Every message takes a second, whatever is in it: seconds are rounds.
UNITS = Flat(alpha=1.0, beta=0.0)


def growth_case(exercise: Exercise, growth: Growth, seed: int, n: int) -> Case:
    """The input at ``n`` simulated ranks."""
    return growth.case(Draw(seed, exercise.name, n))


def grown(
    launcher: Launcher,
    exercise: Exercise,
    program: Program,
    seed: int,
    seconds: float,
    memory: int,
    failed: CaseVerdict | None,
) -> list[CaseVerdict]:
    """The verdicts on an answer at the sizes that its exercise says.

    Args:
        launcher: starts the process.
        exercise: has a growth.
        program: the answer's.
        seed: of the inputs.
        seconds: of the wall clock that one size may take.
        memory: bytes that all ranks together may allocate.
        failed: a case that the answer has failed before, after which nothing is run.
    """
    growth = exercise.growth
    assert growth is not None
    verdicts: list[CaseVerdict] = []
    for n in growth.sizes:
        case = growth_case(exercise, growth, seed, n)
        if failed is None:
            verdict, simulation = _run(launcher, exercise, program, case, growth, seconds, memory)
            found = [verdict, *_limits(exercise, case, simulation, verdict)]
        else:
            found = [not_run(case, failed)] + [
                replace(not_run(case, failed), name=limit.quantity) for limit in exercise.limits
            ]
        verdicts += [replace(one, simulated=True) for one in found]
        failed = failed or next((one for one in verdicts if not one.passed), None)
    return verdicts


def _run(
    launcher: Launcher,
    exercise: Exercise,
    program: Program,
    case: Case,
    growth: Growth,
    seconds: float,
    memory: int,
) -> tuple[CaseVerdict, Simulation]:
    answered = case.n <= growth.values
    job = Job(
        entry=exercise.name,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.allowed,
        seconds=seconds,
    )
    simulation = simulate(
        launcher, program, job, UNITS, counted=True, answered=answered, memory=memory
    )
    if answered or simulation.failure is not None:
        nothing = Trace(((),) * case.n)
        output = (simulation.output,) if simulation.output else ()
        outcome = Outcome(
            simulation.results, simulation.failure, nothing, output, simulation.seconds
        )
        verdict, _ = assess(exercise, case, outcome)
    else:
        verdict = CaseVerdict(case.name, case.n, Status.PASSED)
    tally = simulation.tally
    # hundreds of rows would say no more than the message does
    return replace(verdict, traffic=tally.traffic if tally else None, by_rank=()), simulation


def _limits(
    exercise: Exercise, case: Case, simulation: Simulation, verdict: CaseVerdict
) -> Sequence[CaseVerdict]:
    found = []
    for limit in exercise.limits:
        one = CaseVerdict(limit.quantity, case.n, Status.FAILED, verdict.diagnosis)
        if simulation.tally is None or not verdict.passed:
            message = "not judged: the run on simulated ranks did not give the right result"
            found.append(replace(one, message=message))
            continue
        measured, asked = limit.measure(simulation.tally), limit.asked(case)
        bound = Bound(limit.quantity, measured, limit.relation, asked)
        one = replace(one, traffic=simulation.tally.traffic, bounds=(bound,))
        if bound.holds:
            found.append(replace(one, status=Status.PASSED))
        else:
            message = f"{case.name}: {bound}"
            found.append(replace(one, diagnosis=limit.diagnose(bound), message=message))
    return found
