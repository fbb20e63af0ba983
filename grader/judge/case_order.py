"""The order in which the cases of an answer are run, and the verdicts on those that are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grader.core.verdict import CaseVerdict, Diagnosis, Status
from grader.course.cases import Case
from grader.judge.assessment import ranks

__all__ = ["CaseOrder", "not_run", "too_late"]

#: The prefix of the message on a case that was not run.
_GIVEN_UP = "not run: "

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


def too_late(case: Case, seconds: float) -> CaseVerdict:
    """Return the verdict on a case after the ``seconds`` that an exercise may take."""
    message = f"{_GIVEN_UP}the exercise has taken more than {seconds:g} s in all"
    return _unjudged(case, Diagnosis.TIMEOUT, message)


def not_run(case: Case, because: CaseVerdict) -> CaseVerdict:
    """Return the verdict on a case that was given up because of another one's verdict."""
    message = because.message
    if because.judged:
        where = f"{because.name} on {ranks(because.world_size, because.simulated)}"
        words = because.diagnosis.words if because.diagnosis else because.status
        message = f"{_GIVEN_UP}{where} ended with {words}"
    return _unjudged(case, because.diagnosis, message)


def _unjudged(case: Case, diagnosis: Diagnosis | None, message: str) -> CaseVerdict:
    simulated = case.network is not None
    return CaseVerdict(
        case.name, case.n, Status.FAILED, diagnosis, message, simulated=simulated, judged=False
    )
