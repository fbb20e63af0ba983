"""The findings on an answer, one world size after the other."""

from __future__ import annotations

from dataclasses import dataclass

from grader.exercise.declaration import JudgedCase
from grader.exercise.verdict import CaseVerdict

__all__ = ["Findings", "SizeFindings"]

#: World sizes that have to fail before the hint is known.
_DECISIVE_SIZES = 2


@dataclass(frozen=True)
class SizeFindings:
    """The findings of one world size.

    Attributes:
        verdicts: the verdicts on its cases and limits, in the order of the exercise.
        judged: those that were judged, as evidence for hints.
        stop: the verdict after which nothing more is run, if there is one.
        remark: a remark on a right run; empty if none deserves one.
        hint: the hint that a second run of the case of ``stop`` has proved.
    """

    verdicts: tuple[CaseVerdict, ...]
    judged: tuple[JudgedCase, ...]
    stop: CaseVerdict | None = None
    remark: str = ""
    hint: str = ""


class Findings:
    """The findings of all world sizes that have been judged.

    Attributes:
        verdicts: all verdicts.
        evidence: the judged cases from which a hint is chosen.
        gravity: how grave the gravest failure is; 0 if there is none.
        failing: the number of world sizes above 1 that have failed, until the hint is known.
        stop, remark, hint: those of the first size that has one.
    """

    def __init__(self) -> None:
        self.verdicts: list[CaseVerdict] = []
        self.evidence: list[JudgedCase] = []
        self.gravity = 0
        self.failing = 0
        self.stop: CaseVerdict | None = None
        self.remark = ""
        self.hint = ""

    def add(self, n: int, size: SizeFindings) -> None:
        """Add the findings of world size ``n``.

        Its judged cases are kept for the choice of a hint until two sizes have failed, and later
        if one of them leads the verdict.
        """
        before = max((one.gravity for one in self.evidence), default=0)
        gravity = max((one.gravity for one in size.judged), default=0)
        self.gravity = max(self.gravity, gravity)
        if self.failing < _DECISIVE_SIZES or gravity > before:
            self.evidence += size.judged
            self.failing += n > 1 and gravity > 0
        self.verdicts += size.verdicts
        self.stop = self.stop or size.stop
        self.remark = self.remark or size.remark
        self.hint = self.hint or size.hint

    @property
    def decisive(self) -> bool:
        """Whether enough is known to choose a hint."""
        return self.stop is not None or self.failing >= _DECISIVE_SIZES

    def proved_hint(self, failed: CaseVerdict) -> str:
        """Return the hint that a second run has proved, if it is on this case."""
        stop = self.stop
        same = stop and (stop.world_size, stop.name) == (failed.world_size, failed.name)
        return self.hint if same else ""
