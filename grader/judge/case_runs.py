"""Runs of one case: with more patience, in several orders of arrival, with one order of sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from grader.exercise.cases import Case
from grader.exercise.declaration import Exercise, JudgedCase
from grader.exercise.verdict import CaseVerdict
from grader.judge.assessment import assess, assess_again, rounding
from grader.judge.settings import Settings, clock_seconds, make_job
from grader.judge.worlds import WorldPool
from headcount.core.packing import about_hash_seeds
from headcount.launch.world import Outcome
from headcount.trace.wildcard_schedules import Exploration, named_race

__all__ = ["CaseRun", "CaseRunner"]

#: Orders of arrival tried of the first case of a world size that has several.
_ORDERS = 12

#: Orders tried of further cases, in which the data differ and the orders seldom do.
_FEW_ORDERS = 2

#: Orders tried to find one that passes, where the first does not.
_ORDERS_TO_PASS = 6

#: How often a case is run again with more time, which a busy machine may have made too short.
_MORE_TIMES = 2


@dataclass(frozen=True)
class CaseRun:
    """A run of a case, and what it shows.

    Attributes:
        outcome: what the ranks returned and sent.
        verdict: the verdict on it.
        judged: the evidence for hints.
        hint: the hint that a second run has proved; empty if there is none.
    """

    outcome: Outcome
    verdict: CaseVerdict
    judged: JudgedCase
    hint: str = ""


class CaseRunner:
    """Runs the cases of one answer, each as often as its verdict needs.

    Args:
        exercise: the exercise.
        settings: seed and limits.
        worlds: the worlds of the check.
    """

    def __init__(self, exercise: Exercise, settings: Settings, worlds: WorldPool) -> None:
        self._exercise = exercise
        self._settings = settings
        self._worlds = worlds
        #: world sizes at which many orders of arrival have been tried
        self._explored: set[int] = set()
        #: whether a case was as wrong with more time, so that no other gets any
        self._patience_lost = False

    def run(self, case: Case, gravity: int) -> CaseRun:
        """Run a case, and once more if the orders of sets may be the cause of its failure.

        Args:
            case: the case.
            gravity: how grave the gravest failure so far is; 0 if there is none.
        """
        found = self._run(case, gravity)
        sets = found.outcome.trace.sets_taken
        if found.verdict.passed or not sets or not self._worlds.set_orders:
            return found
        self._worlds.share_set_orders(case.n)
        again = self._run(case, gravity)
        if again.verdict.passed:
            return replace(found, hint=about_hash_seeds(sets))
        return again

    def _run(self, case: Case, gravity: int) -> CaseRun:
        found = self._call(case, self._settings)
        if self._exercise.patient is not None and not self._patience_lost:
            case, found = self._call_with_more_time(case, found, self._exercise.patient)
        # a virtual clock has one order of arrival only
        if (
            case.network is None
            and found.outcome.trace.choices
            and _worth_exploring(found, gravity)
        ):
            found = self._explore(case, found)
        if (
            found.verdict.passed
            and not found.verdict.orders
            and self._exercise.values.same_bits
            and rounding(self._exercise, case)
        ):
            again = self._worlds.run(case.n, make_job(self._exercise, case, self._settings))
            return self._compare(case, found.outcome, again)
        return found

    def _call_with_more_time(
        self, case: Case, found: CaseRun, patient: Callable[[JudgedCase], Case | None]
    ) -> tuple[Case, CaseRun]:
        """Run a case again, each time with more time, while it may be wrong for want of it."""
        seconds = self._settings.seconds
        for _ in range(_MORE_TIMES):
            longer = patient(found.judged)
            if longer is None:
                return case, found
            case, seconds = longer, 2 * seconds
            found = self._call(case, replace(self._settings, seconds=seconds))
        self._patience_lost = patient(found.judged) is not None
        return case, found

    def _call(self, case: Case, settings: Settings) -> CaseRun:
        outcome = self._worlds.run(case.n, make_job(self._exercise, case, settings))
        return CaseRun(outcome, *assess(self._exercise, case, outcome))

    def _compare(self, case: Case, first: Outcome, again: Outcome) -> CaseRun:
        """Return the first run of a case, judged by another one as well."""
        return CaseRun(first, *assess_again(self._exercise, case, first, again))

    def _explore(self, case: Case, first: CaseRun) -> CaseRun:
        """Run a case in other orders of arrival, in all of which it must be right.

        If the first run is wrong, a right one is looked for, to name the choice that decides.
        """
        most = _FEW_ORDERS if case.n in self._explored else _ORDERS
        if not first.verdict.passed:
            most = _ORDERS_TO_PASS
        exploration = Exploration(most, clock_seconds(self._settings, 1))
        exploration.add(first.outcome.trace)
        right, wrong = ([first], []) if first.verdict.passed else ([], [first])
        while not (right and wrong) and (policy := exploration.next()) is not None:
            job = make_job(self._exercise, case, self._settings, policy)
            outcome = self._worlds.run(case.n, job)
            exploration.add(outcome.trace)
            if right:
                assessed = assess_again(self._exercise, case, right[0].outcome, outcome)
            else:
                assessed = assess(self._exercise, case, outcome, repeated=True)
            again = CaseRun(outcome, *assessed)
            (right if again.verdict.passed else wrong).append(again)
        orders = exploration.orders
        if wrong:
            failed = wrong[0]
            race = named_race(failed.outcome.trace, [run.outcome.trace for run in right], orders)
            message = f"{failed.verdict.message}{race}"
            return replace(failed, verdict=replace(failed.verdict, message=message))
        if orders.known == 1:
            return first
        self._explored.add(case.n)
        return replace(first, verdict=replace(first.verdict, orders=orders))


def _worth_exploring(found: CaseRun, gravity: int) -> bool:
    """Return whether other orders of a case's messages could change what is reported."""
    # only the failure that leads the verdict is reported, and with it the choice that decides
    leads = found.judged.gravity > gravity
    return found.verdict.passed or (leads and not found.verdict.final)
