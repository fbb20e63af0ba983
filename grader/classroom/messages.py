"""The messages between the grading of a class and the workers that judge submissions.

They are plain data, so that they travel to a process or to another machine, and this
module imports no torch, so that a worker can read one before it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from itertools import islice

from grader.exercise.verdict import ExerciseVerdict
from headcount.core.errors import RequestError
from headcount.core.resource_limits import DEFAULTS

#: Remarks from one place on one submission, and characters of each; a student names the files.
_REMARKS, _REMARK = 20, 300


def bounded(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the first remarks, each cut, and how many more there are."""
    ahead = iter(remarks)
    kept = [f"{one[:_REMARK]}{'…' * (len(one) > _REMARK)}" for one in islice(ahead, _REMARKS)]
    more = sum(1 for _ in ahead)
    return (*kept, f"… and {more} more remarks like these") if more else tuple(kept)


@dataclass(frozen=True)
class Limits:
    """Limits on the judging of one submission.

    Attributes:
        call: seconds that a rank may compute, or all may sleep, in one call of an answer.
        exercise: seconds of all calls for one exercise, by the clock.
        submission: seconds of all exercises, by the clock.
        memory: bytes that all ranks may use together.
        sandbox: whether it runs in a sandbox; without one it runs as the user who grades.
    """

    call: float = DEFAULTS.call
    exercise: float = DEFAULTS.exercise
    submission: float = DEFAULTS.submission
    memory: int = DEFAULTS.submission_memory
    sandbox: bool = True

    def key(self) -> tuple[float, ...]:
        """Return the values that a verdict depends on."""
        return astuple(self)


#: Least seed for answers in a sandbox: 20 digits.
_LEAST_SEED = 1 << 64


def require_long(seed: int) -> None:
    """Check that a seed cannot be found by trying.

    The way from a seed to all inputs is public, so an answer that sees its own inputs could try
    short seeds, and would then know everybody's.

    Raises:
        RequestError: the seed is too short.
    """
    if abs(seed) < _LEAST_SEED:
        raise RequestError(
            f"the seed {seed} is so short that an answer could find it by trying, and with it all"
            " inputs; take a secret one of 20 digits or more, as"
            " `python -c 'import secrets; print(secrets.randbits(128))'` prints, or none"
        )


@dataclass(frozen=True)
class GradingRequest:
    """A request to judge one submission.

    Attributes:
        key: the submission's key.
        files: label and contents of each file, oldest first.
        digest: hash of the files.
        seed: seed of the inputs.
        limits: limits on time and memory, and whether there is a sandbox.
        known: fingerprints of the verdicts that the store has, by exercise.
        due: names of the exercises that the assignment states; none if it states nothing, and
            whatever was handed in is judged.
        hidden: folders that the sandbox must not show.
        overdue: of a submission whose judging had to be ended, the exercises that it had planned
            and not yet judged: they get their verdicts without a further look at the files.
    """

    key: str
    files: tuple[tuple[str, bytes], ...]
    digest: str
    seed: int
    limits: Limits
    known: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    due: tuple[str, ...] = ()
    overdue: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SubmissionPlanned:
    """The exercises that a submission will be judged on.

    Attributes:
        key: the submission's key.
        exercises: their names.
        notes: remarks on the submission's files.
        prints: fingerprints of the answers, for similarity, by exercise.
        files: the files that the answers are taken from.
    """

    key: str
    exercises: tuple[str, ...]
    notes: tuple[str, ...]
    prints: dict[str, list[int]] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExerciseJudged:
    """The verdict on one exercise of a submission, and the fingerprint of its conditions."""

    key: str
    fingerprint: str
    verdict: ExerciseVerdict


@dataclass(frozen=True)
class SubmissionJudged:
    """The end of a submission's judging."""

    key: str


@dataclass(frozen=True)
class SubmissionLost:
    """The failure of the grader itself on a submission, with the reason."""

    key: str
    reason: str


@dataclass(frozen=True)
class WorkerReady:
    """A worker process can take a request, which it says once."""


@dataclass(frozen=True)
class Workers:
    """The number of submissions that can be judged at a time, which changes on a cluster."""

    count: int


#: An event in the judging of one submission; the last one is its end or its loss.
GradingEvent = SubmissionPlanned | ExerciseJudged | SubmissionJudged | SubmissionLost


def in_words(event: GradingEvent | Workers) -> str:
    """Return an event as a line of a log."""
    match event:
        case SubmissionPlanned(key=key, exercises=exercises):
            return f"{key}: {', '.join(exercises) or 'nothing'} to judge"
        case ExerciseJudged(key=key, verdict=verdict):
            word = verdict.diagnosis or verdict.status
            return f"{key}: {verdict.name}: {word.value} after {verdict.seconds:.1f} s"
        case SubmissionJudged(key=key):
            return f"{key}: judged"
        case SubmissionLost(key=key, reason=reason):
            return f"{key}: lost: {reason}"
        case Workers(count=count):
            return f"{count} submissions can be judged at a time"
