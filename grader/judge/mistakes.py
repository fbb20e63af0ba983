"""Runs the mistakes of an exercise on simulated ranks, and compares them with an answer.

A mistake is recognised if its program does what the answer did, in every case that was judged: it
holds the same values, sends as much, and fails in the same way.  Where its hint says more, of who
sends to whom or of what ends up in an argument, that has to be the same as well.  The programs are
the grader's own, so they share processes; it never runs a student's code.
"""

from __future__ import annotations

import marshal
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from itertools import cycle, zip_longest
from typing import Any

from grader.exercise.answers import KnownAnswer
from grader.exercise.cases import Case
from grader.exercise.compare import compare
from grader.exercise.declaration import Evidence, Exercise, JudgedCase
from grader.exercise.hints import agree
from grader.exercise.verdict import Bound
from grader.judge.assessment import assess, assess_limit, held_by, measure
from headcount.core.program import Program, Unit
from headcount.core.verdict import Diagnosis, Failure, Wait
from headcount.launch.launchers import Launcher
from headcount.launch.world import Job, Outcome
from headcount.simulation.launch import SimulationProcess
from headcount.simulation.simulation_world import SimulationWorld
from headcount.trace.trace import Trace

__all__ = ["recognised"]

#: Runs, besides one of each program, that may be spent on ruling out mistakes.
RUNS = 40

#: Cases in which a mistake has to agree to count where the runs are spent before the cases.
ENOUGH = 4

#: Cases, besides the first, after which no more are run if all that still agree have one hint.
SURE = 6

#: Processes of simulated ranks.  While one program's outcome is compared, others run.
PROCESSES = 2

#: Makes the call of an exercise for a case.
MakeJob = Callable[[Case], Job]


def recognised(
    launcher: Launcher, exercise: Exercise, evidence: Evidence, make_job: MakeJob, memory: int
) -> str:
    """Return the hint of the one mistake that does what an answer did, or an empty string.

    Where several do, those whose messages are the most like the answer's count; and if their hints
    differ, none is given.

    Args:
        launcher: starts processes of simulated ranks, if a mistake comes into question, and waits
            for their end when it is asked to settle.
        exercise: the exercise.
        evidence: what was judged.
        make_job: makes the call for a case.
        memory: bytes that the simulated ranks may allocate.

    Raises:
        WorldError: the process cannot be started.
    """
    # which of them leads is the answer's matter: a case that hangs comes before one that raises
    known = [
        (mistake, source, styles)
        for mistake in exercise.programs()
        if mistake.diagnosis in {one.diagnosis for one in evidence.failed}
        for source, styles in zip(mistake.sources, mistake.styles, strict=True)
    ]
    if not known or evidence.case.pauses:
        return ""
    here, *others = _cases_to_agree_in(evidence)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(closing(SimulationProcess(launcher))) for _ in range(PROCESSES)
        ]
        runs = _MistakeRuns(processes, exercise, make_job, memory, _telling(evidence))
        agreeing = runs.agreeing([(mistake, source) for mistake, source, _ in known], here)
        likely = [one for one, agrees in zip(known, agreeing, strict=True) if agrees]
        left = _agreeing_in_all(runs, [(mistake, source) for mistake, source, _ in likely], others)
        if not left:
            styled = [(mistake, text) for mistake, _, styles in likely for text in styles]
            left = _agreeing_in_all(runs, styled, [here, *others])
        if len({mistake.hint for mistake, _ in left}) > 1:
            # on two ranks, ways of sending look alike that differ on more
            largest = max(evidence.failed, key=lambda one: one.case.n)
            likeness = runs.likeness([source for _, source in left], largest)
            most = max(likeness)
            left = [one for one, alike in zip(left, likeness, strict=True) if alike == most]
    hints = {mistake.hint for mistake, _ in left}
    return hints.pop() if len(hints) == 1 else ""


#: A mistake, and the text of its program.
_Known = tuple[KnownAnswer, str]


def _agreeing_in_all(
    runs: _MistakeRuns, known: list[_Known], cases: Iterable[JudgedCase]
) -> list[_Known]:
    """Return those that agree with the answer in every case that there are runs for.

    This says how long to look, and nothing else: what is never run rules nothing out, so that with
    fewer runs more mistakes are left, and their hints differ more often.
    """
    left, budget = known, RUNS + len(known)
    for done, one in enumerate(cases):
        if len(left) > budget:
            return left if done >= ENOUGH else []
        budget -= len(left)
        agreeing = runs.agreeing(left, one)
        left = [entry for entry, agrees in zip(left, agreeing, strict=True) if agrees]
        if not left or (done >= SURE and len({mistake.hint for mistake, _ in left}) == 1):
            break
    return left


def _telling(evidence: Evidence) -> JudgedCase | None:
    """Return the largest failed case that has ended: on two ranks nobody can tell who is meant."""
    ended = (
        one
        for one in evidence.failed
        if one.failure is None and one.case.n > 1 and not one.case.pauses
    )
    return max(ended, key=lambda one: one.case.n, default=None)


def _cases_to_agree_in(evidence: Evidence) -> Iterator[JudgedCase]:
    """Yield the cases in which a mistake has to agree, those that rule out most of them first."""
    here, telling = evidence.here, _telling(evidence)
    yield here
    # simulated ranks cannot pause, where the judge weighs them
    others = [one for one in evidence.judged if one is not here and not one.case.pauses]
    # where only a limit is missed, values that are right say nothing of values that are wrong
    wrong = {one.case.n for one in evidence.failed if one.diagnosis is evidence.diagnosis}
    # what is right says most where something else is wrong
    passed = sorted(
        (one for one in others if one.passed and one.limit is None),
        key=lambda one: (one.case.n not in wrong, one.case.n),
    )
    # on few ranks many mistakes look alike
    failed = sorted(
        (one for one in others if not one.passed), key=lambda one: (one is not telling, -one.case.n)
    )
    for pair in zip_longest(failed, passed):
        yield from (one for one in pair if one is not None)


class _MistakeRuns:
    """Runs of mistakes of one exercise on simulated ranks.

    Args:
        processes: run them.
        exercise: the exercise.
        make_job: makes the call for a case.
        memory: bytes that the simulated ranks may allocate.
        telling: the case in which messages are compared, see :func:`_telling`.
    """

    def __init__(
        self,
        processes: Sequence[SimulationProcess],
        exercise: Exercise,
        make_job: MakeJob,
        memory: int,
        telling: JudgedCase | None,
    ) -> None:
        self._processes = processes
        self._exercise = _with_memory(exercise)
        self._make_job = make_job
        self._memory = memory
        self._telling = telling

    def agreeing(self, known: Sequence[_Known], one: JudgedCase) -> list[bool]:
        """Return of each program whether it does in a case what the answer did."""
        exercise, case = self._exercise, one.case
        failed = one.failure is not None or one.limit is not None
        recorded = failed or bool(case.network or exercise.traffic.proof) or one is self._telling
        outcomes = self._outcomes([source for _, source in known], case, recorded)
        return [
            self._agrees(outcome, one) and self._bears_out(mistake.alike, outcome, one)
            for (mistake, _), outcome in zip(known, outcomes, strict=True)
        ]

    def _agrees(self, outcome: Outcome, one: JudgedCase) -> bool:
        """Return whether a program has done in a case what the answer did."""
        exercise, case = self._exercise, one.case
        if one.limit is not None:
            return self._misses(outcome, case, one.limit, one.diagnosis)
        if one.diagnosis is Diagnosis.NOT_SYNCHRONIZED and (
            _amounts_sent(outcome.trace) != _amounts_sent(one.trace)
            or not _begin_alike(outcome.trace, one.trace)
        ):
            return False  # the messages are what is wrong
        if one.failure is not None:
            _, other = assess(exercise, case, outcome, shown=False)
            return other.diagnosis is one.diagnosis and _fail_alike(one.failure, other.failure)
        # what disagrees in values is never assessed, which takes longer than to compare
        actual = held_by(exercise, case, outcome)
        if len(actual) != len(one.actual):
            return False
        alike = agree(exercise, case, actual, one.actual)
        if not alike and not (one.passed and exercise.values.also):
            return False
        _, other = assess(exercise, case, outcome, shown=False)
        return other.failure is None and other.diagnosis is one.diagnosis

    def _bears_out(self, alike: str, outcome: Outcome, one: JudgedCase) -> bool:
        """Return whether a program sends in a case what its hint implies of the answer."""
        if self._telling is None:
            return alike != "messages" or one.passed or one.failure is not None
        if one is not self._telling:
            return True
        if alike == "messages":
            return one.case.n > 2 and _connections(outcome.trace) == _connections(one.trace)
        if alike == "arguments":
            held = [result.arguments for result in outcome.results]
            return compare(held, one.arguments, one.case.n) is None
        return _makes_calls(outcome.trace) == _makes_calls(one.trace)

    def likeness(self, sources: Sequence[str], one: JudgedCase) -> list[int]:
        """Return of each program how like the answer's its messages are.

        A point each: both send some, or none; as many; the same; and the same as far as both have
        come, since a run that fails ends at a different moment each time.
        """
        traces = [outcome.trace for outcome in self._outcomes(sources, one.case, recorded=True)]
        return [
            (_makes_calls(trace) == _makes_calls(one.trace))
            + (_amounts_sent(trace) == _amounts_sent(one.trace))
            + (_sorted_calls(trace) == _sorted_calls(one.trace))
            + _begin_alike(trace, one.trace)
            for trace in traces
        ]

    def _misses(
        self, outcome: Outcome, case: Case, bound: Bound, diagnosis: Diagnosis | None
    ) -> bool:
        """Return whether a program's values are right, and its traffic breaks the same limit."""
        _, values = assess(self._exercise, case, outcome, shown=False)
        if not values.passed:
            return False
        for limit in self._exercise.traffic.limits:
            if (limit.quantity, limit.relation) == (bound.quantity, bound.relation):
                _, seen = assess_limit(limit, case.n, [measure(limit, case, outcome)], ())
                if seen is not None and seen.limit is not None:
                    return (seen.diagnosis, seen.limit.measured) == (diagnosis, bound.measured)
        return False

    def _outcomes(self, sources: Sequence[str], case: Case, recorded: bool) -> Iterator[Outcome]:
        """Yield the outcomes of programs on simulated ranks, in their order.

        While the caller looks at one, the processes run the next.  Without a record only what its
        ranks hold is known of a program.
        """
        ahead: deque[Callable[[], Outcome]] = deque()
        for source, process in zip(sources, cycle(self._processes), strict=False):
            # a process that is to run another program has run the one that is next in order
            done = [ahead.popleft()()] if len(ahead) == len(self._processes) else []
            program = _program(self._exercise.name, source)
            world = SimulationWorld(process, program, self._memory, recorded=recorded)
            ahead.append(world.begin(self._make_job(case)))
            yield from done
        for finish in ahead:
            yield finish()


def _with_memory(exercise: Exercise) -> Exercise:
    """Return an exercise that computes what is expected of a case once."""
    values = exercise.values
    remembered = replace(
        values,
        expected=_computed_once(values.expected),
        magnitude=values.magnitude and _computed_once(values.magnitude),
    )
    return replace(exercise, values=remembered)


def _computed_once(function: Callable[[Case], Sequence[Any]]) -> Callable[[Case], Sequence[Any]]:
    """Return a function that keeps its result for every case."""
    known: dict[int, tuple[Case, Sequence[Any]]] = {}

    def remembered(case: Case) -> Sequence[Any]:
        if id(case) not in known:
            known[id(case)] = case, function(case)
        return known[id(case)][1]

    return remembered


def _fail_alike(one: Failure, other: Failure | None) -> bool:
    """Return whether two runs have ended for the same reason, at whatever line."""
    return other is not None and (
        _raised(one) == _raised(other)
        and one.race == other.race
        and one.ended == other.ended
        and _wait_edges(one.waits) == _wait_edges(other.waits)
    )


def _raised(failure: Failure) -> str:
    """Return what was raised, without the names of classes, by which autograd calls its nodes."""
    return re.sub(r"\w+Backward\b", "", str(failure.raised))


def _wait_edges(waits: Sequence[Wait]) -> set[tuple[int, str, tuple[int, ...]]]:
    return {(wait.rank, wait.call, wait.peers) for wait in waits}


def _begin_alike(one: Trace, other: Trace) -> bool:
    """Return whether each rank calls the same in two runs until one of them ends."""
    return all(
        (mine.kind, mine.peer, mine.count) == (theirs.kind, theirs.peer, theirs.count)
        for pair in zip(one.operations, other.operations, strict=True)
        for mine, theirs in zip(*pair, strict=False)
    )


def _connections(trace: Trace) -> set[tuple[int, str, int]]:
    """Return who sends to whom, and who calls which collectives."""
    return {
        (op.rank, op.kind, op.peer)
        for operations in trace.operations
        for op in operations
        if op.kind != "recv"
    }


def _makes_calls(trace: Trace) -> bool:
    """Return whether any rank has called anything."""
    return any(trace.operations)


def _sorted_calls(trace: Trace) -> list[tuple[object, ...]]:
    """Return all operations, of a message with its place in the memory that it was taken from."""
    return sorted(
        (op.rank, op.kind, op.peer, op.count, op.offset if op.is_message else 0)
        for operations in trace.operations
        for op in operations
    )


def _amounts_sent(trace: Trace) -> tuple[int, int, int]:
    """Return how many messages and bytes were sent, and in how many rounds."""
    traffic = trace.traffic
    return traffic.messages, traffic.bytes, traffic.rounds


@cache
def _program(exercise: str, source: str) -> Program:
    code = marshal.dumps(compile(source, "mistake.py", "exec"))
    return Program(units=[Unit("mistake.py", 1, [exercise], code)], label="mistake.py")
