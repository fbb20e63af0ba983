"""A graded class as plain data: what every output is made from."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from grader.core.verdict import ExerciseVerdict, Status, SubmissionVerdict, total

__all__ = ["Asked", "ClassResults", "Row", "Standing"]

#: Bytes of a key: with an ending, and a temporary one, it is still a file name.
_LONGEST_KEY = 200


class Standing:
    """How far the grading of a submission came."""

    GRADED = "graded"
    #: The grader failed, on the whole or on an exercise; the score is not final.
    ERROR = "error"
    NOTHING = "nothing handed in"


@dataclass(frozen=True)
class Asked:
    """An exercise that the class was asked to do."""

    name: str
    chapter: str
    points: float


@dataclass(frozen=True)
class Row:
    """One submission.

    Attributes:
        key: a safe file name, unique in the class.
        student: the name exactly as it arrived; data, whatever it looks like.
        email, number: if they came with it.
        exercises: the verdicts.
        earlier: by exercise, the verdict of an earlier grading.
        notes: what is to be said about its files.
        fault: what the grader itself failed at; empty if it did not.
        unsafe: whether it was graded without a sandbox.
    """

    key: str
    student: str
    email: str | None = None
    number: str | None = None
    exercises: tuple[ExerciseVerdict, ...] = ()
    earlier: Mapping[str, ExerciseVerdict] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fault: str = ""
    unsafe: bool = False

    @cached_property
    def by_name(self) -> dict[str, ExerciseVerdict]:
        """The verdicts by exercise."""
        return {verdict.name: verdict for verdict in self.exercises}

    @property
    def score(self) -> float:
        """Points earned; not final while :attr:`standing` is ``error``."""
        return total(verdict.score for verdict in self.exercises)

    @property
    def seconds(self) -> float:
        """How long the judging of all exercises took."""
        return sum(verdict.seconds for verdict in self.exercises)

    @property
    def standing(self) -> str:
        """A word of :class:`Standing`."""
        if self.fault or any(v.status is Status.ERROR for v in self.exercises):
            return Standing.ERROR
        return Standing.GRADED if self.exercises else Standing.NOTHING

    def verdict(self) -> SubmissionVerdict:
        """The submission as ``python -m grader check`` would tell of it."""
        seed = self.exercises[0].seed if self.exercises else 0
        return SubmissionVerdict(self.student, seed, self.exercises)


@dataclass(frozen=True)
class ClassResults:
    """A class.

    Attributes:
        title: of the assignment.
        graded_at: when, as ISO 8601 text.
        rows: one per submission, in the order of the class.
        course: what the class was asked, in the order of the course.  Exercises
            that somebody handed in belong to it in any case.

    Raises:
        ValueError: a key is no safe file name, or two rows share one.
    """

    title: str
    graded_at: str
    rows: tuple[Row, ...]
    course: tuple[Asked, ...] = ()

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for row in self.rows:
            _require_safe(row.key)
            # some file systems fold case, and some normalise
            folded = unicodedata.normalize("NFC", row.key).casefold()
            if folded in seen:
                raise ValueError(f"two submissions have the key {row.key!r}; make keys unique")
            seen[folded] = row.key

    @cached_property
    def asked(self) -> tuple[Asked, ...]:
        """Every exercise that has a column."""
        found = {asked.name: asked for asked in self.course}
        extra: dict[str, Asked] = {}
        for row in self.rows:
            for v in row.exercises:
                if v.name not in found:
                    extra.setdefault(v.name, Asked(v.name, v.chapter, v.max_score))
        return (*found.values(), *sorted(extra.values(), key=lambda asked: asked.chapter))

    @cached_property
    def points(self) -> float:
        """What the class could earn, the same for everyone."""
        return total(asked.points for asked in self.asked)

    def points_of(self, row: Row) -> float:
        """What a student could earn: all that was asked, but for what could not be judged here."""
        skipped = {v.name for v in row.exercises if v.status is Status.SKIPPED}
        return total(asked.points for asked in self.asked if asked.name not in skipped)

    def ungraded(self, row: Row) -> str:
        """Why a submission has no final score that could be handed on; empty if it has one."""
        if row.standing == Standing.ERROR:
            return "the grader failed on it; grade it again"
        if row.exercises and not self.points_of(row):
            return "nothing of it could be judged here"
        return ""

    def share(self, row: Row) -> float:
        """A final score as a share of what the student could earn.

        Gradebooks with one maximum for everybody get this share of it.  Points alone would
        count an exercise that could not be judged here as a failed one.
        """
        most = self.points_of(row)
        return row.score / most if most else 0.0


def _require_safe(key: str) -> None:
    plain = key.isprintable() and not set(key) & set('/\\:*?"<>|')
    if not plain or key[:1] in ("", ".", "-", " ") or len(key.encode()) > _LONGEST_KEY:
        raise ValueError(
            f"{key!r} is no safe file name; a key has no slashes or control characters, does not"
            f" begin with a dot, and has 1 to {_LONGEST_KEY} bytes"
        )
