"""The settings of a check, and the call that is made of a case under them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from grader.exercise.cases import Case
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import CaseVerdict
from headcount.core.resource_limits import DEFAULTS
from headcount.core.semantics import Semantics
from headcount.core.verdict import Diagnosis
from headcount.launch.world import Job
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = ["Settings", "clock_seconds", "explain_time_limit", "make_job"]

#: The time limit of a simulation as a multiple of a call's, since its ranks run in turn.
_CROWD = 30

#: The same of a call in which a rank is killed or late: the others have to wait for it, or until it
#: counts as dead; and of one in which ranks pause, for which the judge draws much and waits.
_PATIENT = 3


#: How wildcards are matched in the first run of a case.
_FIRST_POLICY = WildcardPolicy()


@dataclass(frozen=True)
class Settings:
    """Seed, sizes, limits and backend of a check.

    Attributes:
        seed: the seed of the inputs, and of the random numbers that ranks draw.
        world_sizes: the sizes to judge at; None for those of each exercise.
        seconds: processor time that a rank may use in one call, or that all may sleep.
        memory: bytes that a rank may allocate.
        first_failure: whether to stop at the first failure; the score is then meaningless.
        until_hint: whether to stop when two sizes have failed, which mostly show what a whole
            check would; a graver fault of a larger size is not found, and the score is
            meaningless.
        patience: seconds that an exercise may take in all; cases that would
            start later fail.
        until: when a compiler must be done, on the monotonic clock.
        answer: bytes of tensors that a rank may send back.
        backend: what carries the messages, see :mod:`headcount.launch.backends`.
        semantics: by whose rules a run is judged that ends well.
        questions: whether verdicts hold questions to the author, see :mod:`grader.judge.questions`.
    """

    seed: int
    world_sizes: tuple[int, ...] | None = None
    seconds: float = DEFAULTS.call
    memory: int = DEFAULTS.rank_memory
    first_failure: bool = False
    until_hint: bool = False
    patience: float = math.inf
    until: float = math.inf
    answer: int = DEFAULTS.answer
    backend: str = "gloo"
    semantics: Semantics = Semantics.GLOO
    questions: bool = False


#: Elements of the largest tensor whose contents are recorded, where messages are compared.
_WATCHED = 64


def clock_seconds(settings: Settings, n: int, simulated: bool = False) -> float:
    """Return the seconds that a call may take by the wall clock."""
    if simulated:
        return _CROWD * settings.seconds
    return DEFAULTS.by_the_clock(settings.seconds, n)


def explain_time_limit(verdict: CaseVerdict, exercise: Exercise, settings: Settings) -> CaseVerdict:
    """Return a verdict that names the limit on time, and what raises it, if the time was over."""
    if verdict.diagnosis is not Diagnosis.TIMEOUT or not verdict.judged:
        return verdict
    clock = clock_seconds(settings, verdict.world_size, verdict.simulated)
    more = 5 * settings.seconds
    limit = (
        f"a rank may compute for {settings.seconds:g} s in one call, or all may sleep; by the clock"
        f" a call may take {clock:g} s. --seconds {more:g} allows five times as much, and so does"
        f" check({exercise.name}, seconds={more:g})"
    )
    return replace(verdict, detail=(*verdict.detail, limit))


def make_job(
    exercise: Exercise, case: Case, settings: Settings, policy: WildcardPolicy = _FIRST_POLICY
) -> Job:
    """Return the call of an exercise's function on every rank of a case."""
    return Job(
        entry=exercise.function,
        arguments=tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.traffic.allowed,
        policy=policy,
        seconds=clock_seconds(settings, case.n, case.network is not None)
        * (_PATIENT if case.pauses else 1),
        effort=settings.seconds * (_PATIENT if case.killed or case.late or case.pauses else 1),
        answer_limit=settings.answer,
        killed=case.killed,
        late=case.late,
        held=case.held,
        network=case.network,
        pauses=case.pauses,
        watched=_WATCHED if exercise.traffic.carried is not None else 0,
    )
