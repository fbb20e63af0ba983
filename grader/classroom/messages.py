"""What a worker is asked for, and what it tells.

Plain data, so that they travel to a process or to another machine.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from grader.core.resource_limits import DEFAULTS
from grader.core.verdict import ExerciseVerdict

__all__ = [
    "SubmissionJudged",
    "ExerciseJudged",
    "Limits",
    "SubmissionLost",
    "GradingRequest",
    "SubmissionPlanned",
    "Told",
    "Workers",
]


@dataclass(frozen=True)
class Limits:
    """What a submission may take, and where it runs.

    Attributes:
        call: seconds of one call of an answer.
        exercise: seconds of all calls for one exercise.
        submission: seconds of all exercises.
        memory: bytes that all ranks may use together.
        sandbox: whether it runs in one; without, it runs as the person who grades.
    """

    call: float = DEFAULTS.call
    exercise: float = DEFAULTS.exercise
    submission: float = DEFAULTS.submission
    memory: int = DEFAULTS.submission_memory
    sandbox: bool = True

    def key(self) -> tuple[float, ...]:
        """What a verdict depends on."""
        return astuple(self)


@dataclass(frozen=True)
class GradingRequest:
    """Judge one submission.

    Attributes:
        key: of the submission.
        files: label and contents of each, the oldest first.
        digest: of the files.
        seed: of the inputs.
        limits: on time and memory, and whether there is a sandbox.
        known: fingerprints of the verdicts that there are, by exercise.
        hidden: folders that must not be seen from inside.
    """

    key: str
    files: tuple[tuple[str, bytes], ...]
    digest: str
    seed: int
    limits: Limits
    known: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubmissionPlanned:
    """What a submission will be judged on, and what is to be said about its files.

    ``prints`` are its answers' fingerprints, by exercise.
    """

    key: str
    exercises: tuple[str, ...]
    notes: tuple[str, ...]
    prints: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ExerciseJudged:
    """One exercise of a submission has been judged."""

    key: str
    fingerprint: str
    verdict: ExerciseVerdict


@dataclass(frozen=True)
class SubmissionJudged:
    """A submission has been judged."""

    key: str


@dataclass(frozen=True)
class SubmissionLost:
    """A submission could not be judged, and that is the grader's fault."""

    key: str
    reason: str


@dataclass(frozen=True)
class Workers:
    """So many submissions can be judged at a time from now on; a cluster's workers come and go."""

    count: int


Told = SubmissionPlanned | ExerciseJudged
