"""The order in which the cases of an answer are run, and which of them are given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grader.exercise.cases import Case
from grader.exercise.verdict import CaseVerdict
from headcount.core.verdict import Diagnosis

__all__ = ["CaseOrder"]

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
