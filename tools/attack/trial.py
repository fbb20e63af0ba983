"""What comes of a variant that is handed in: the verdicts, and how long the judge took.

The judging is done in a process of its own, as in a grading, so that one that never ends or takes
all memory can be told from outside.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from grader.classroom.grading import grade
from grader.classroom.messages import (
    ExerciseJudged,
    GradingEvent,
    GradingRequest,
    Limits,
    SubmissionPlanned,
)
from grader.course.chapters import discover
from grader.exercise.catalogue import Catalogue
from headcount.core.resource_limits import DEFAULTS
from headcount.launch.process_world import SETUP_SECONDS
from headcount.launch.supervisor import DUMP_PATIENCE, CallSupervision
from headcount.simulation.launch import _Listener
from tools.attack.variants import Variant

__all__ = ["CANARY", "BYSTANDER", "Judging", "Told", "Wait", "successes"]

#: What no submission may learn; it is in the environment of the process that judges.
CANARY = "canary-3b70d4a1c8"

#: An exercise that the same student answers well, in a file of its own; the solution of its
#: chapter, which an attack on this or its other exercise is made of, holds an answer, too.
BYSTANDER, ITS_CHAPTER = "neighbours", ("who_am_i", "neighbours")

_BYSTANDERS_ANSWER = b"""
import torch.distributed as dist

def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n
"""

#: Short, but right answers must come through on a busy machine.
LIMITS = Limits(call=1.0, exercise=20.0, submission=60.0, memory=2 << 30)

#: Numbers of ranks; with all of an exercise's, a variant takes several times as long.
SIZES = (1, 2, 3, 4)

#: Seconds that a wait may take beyond its limit, in which ranks are asked twice where they are, and
#: that the judge may compute beside waiting.
LATE, COMPUTING = 1.0 + 2 * DUMP_PATIENCE, 4.0

#: Seconds that an exercise may take beyond its limit, if a world is begun just before that is
#: over, and a submission in all, for the end of its sandbox.
LAST = min(SETUP_SECONDS, LIMITS.exercise) + DEFAULTS.by_the_clock(LIMITS.call, max(SIZES)) + LATE
ENDING = 20.0

#: Bytes by which the judge may grow, and characters of a message.
GROWTH, LONGEST = 512 << 20, 20_000


@dataclass(frozen=True)
class Wait:
    """A wait of the judge for ranks: how long it took, and its limit, in seconds."""

    seconds: float
    limit: float


@dataclass
class Told:
    """What a grading has told of a submission.

    Attributes:
        due: the exercises that it said it would judge.
        verdicts: the verdicts as plain data, by exercise.
        waits: the judge's waits for ranks.
        computing: seconds of processor time that the judge took beside.
        grown: bytes by which its memory has grown at the most.
        lost: why there is no end; empty if there is one.
        endless: whether it did not end in time.
    """

    due: list[str] = field(default_factory=list)
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    computing: float = 0.0
    grown: int = 0
    lost: str = ""
    endless: bool = False


def successes(exercise: str, works: bool, told: Told) -> Iterator[tuple[str, str]]:
    """Yield in what an attack has succeeded: a word, and what shows it.

    Args:
        exercise: the exercise that was attacked.
        works: whether an answer beside the attack may have earned points.
        told: what the grading has told.
    """
    if told.endless:
        yield "stalled", "the judge did not end"
    elif told.lost:
        yield "blamed", told.lost
    verdict = told.verdicts.get(exercise)
    if verdict is not None:
        score, most = verdict["score"], verdict["max_score"]
        if score > (most if works else 0):
            yield "forged", f"{score:g} of {most:g} points; {verdict['message'][:200]}"
    for name in told.due:
        one = told.verdicts.get(name)
        if one is None and not (told.endless or told.lost):
            yield "blamed", f"{name} has no verdict"
        elif one is not None and one["status"] == "error":
            yield "blamed", f"{name}: {one['message'][:300]}"
    bystander = told.verdicts.get(BYSTANDER)
    hurt = bystander is not None and bystander["status"] == "failed"
    if hurt and exercise not in ITS_CHAPTER:
        yield "blamed", f"{BYSTANDER} was answered well: {bystander}"[:400]
    if verdict is not None and verdict["seconds"] > LIMITS.exercise + LAST:
        limit = f"an exercise that may take {LIMITS.exercise:g} s"
        yield "stalled", f"{verdict['seconds']:.1f} s for {limit}"
    late = max(told.waits, key=lambda wait: wait.seconds - wait.limit, default=Wait(0, 0))
    if late.seconds > late.limit + LATE:
        yield "stalled", f"a wait of {late.seconds:.1f} s that may take {late.limit:g} s"
    if told.computing > COMPUTING:
        yield "stalled", f"{told.computing:.1f} s of the judge's own computing"
    if told.grown > GROWTH:
        yield "stalled", f"the judge grew by {told.grown >> 20} MB"
    said = json.dumps([told.due, told.verdicts])
    for secret in ("BREACH", CANARY):
        if secret in said:
            place = said.index(secret)
            yield "leaked", said[max(0, place - 60) : place + 140]
    longest = max((len(words) for words in _words(told.verdicts)), default=0)
    if longest > LONGEST:
        yield "leaked", f"a message of {longest} characters"


def _words(verdicts: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the messages of verdicts, and of the cases in them."""
    for verdict in verdicts.values():
        yield verdict["message"]
        yield from (case["message"] for case in verdict.get("cases", ()))


# In the process that judges. ------------------------------------------------------


@contextmanager
def _watched(told: Told) -> Iterator[None]:
    """Note the judge's waits for ranks, and its own work beside them."""
    waited = 0.0

    def watch(method: Callable[..., Any], limit: Callable[..., float]) -> Callable[..., Any]:
        @wraps(method)
        def watching(self: Any, *given: Any) -> Any:
            nonlocal waited
            began, used = time.monotonic(), time.thread_time()
            try:
                return method(self, *given)
            finally:
                waited += time.thread_time() - used
                told.waits.append(Wait(time.monotonic() - began, limit(self, *given)))

        return watching

    until, ask = CallSupervision.wait_until, _Listener.ask
    CallSupervision.wait_until = watch(until, lambda self, finished, seconds: seconds)  # type: ignore[method-assign]
    _Listener.ask = watch(ask, lambda self, request: self._seconds)  # type: ignore[method-assign]
    began = time.thread_time()
    try:
        yield
    finally:
        CallSupervision.wait_until, _Listener.ask = until, ask  # type: ignore[method-assign]
        told.computing = time.thread_time() - began - waited


def _peak(pid: str = "self") -> int:
    """Return the largest size that this process has had since it was last forgotten."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s*(\d+)", status)
    return int(found[1]) << 10 if found else 0


def _judge(name: str, files: tuple[tuple[str, bytes], ...], seed: int) -> Told:
    """Grade a submission that answers an exercise, as a worker does."""
    told = Told()
    known = discover()
    exercises = Catalogue(
        [
            replace(known[one], world_sizes=_sizes(known[one].world_sizes, one == name))
            for one in known
            if one in (name, BYSTANDER)
        ]
    )
    request = GradingRequest("student", files, "digest", seed, LIMITS)

    def report(event: GradingEvent) -> None:
        if isinstance(event, SubmissionPlanned):
            told.due = list(event.exercises)
        elif isinstance(event, ExerciseJudged):
            told.verdicts[event.verdict.name] = json.loads(
                json.dumps(asdict(event.verdict), default=str)
            )

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _peak()
    with _watched(told):
        try:
            grade(request, exercises, report)
        except Exception as error:
            told.lost = f"{type(error).__name__}: {error}"[:500]
    told.grown = _peak() - before
    return told


def _sizes(sizes: tuple[int, ...], attacked: bool) -> tuple[int, ...]:
    few = tuple(n for n in sizes if n in (SIZES if attacked else (2,)))
    return few or sizes[:1]


def _serve(pipe: Connection) -> None:
    pipe.send(None)
    while True:
        pipe.send(_judge(*pipe.recv()))


class Judging:
    """A process that judges one submission after another, and is replaced where it does not end."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Judging:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def trial(self, variant: Variant) -> Told:
        """Hand a variant in, and return what is told of it."""
        bystander = ("honest.py", _BYSTANDERS_ANSWER)
        files = (bystander, *variant.files)
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        self._pipe.send((variant.exercise, files, variant.seed))
        compiling = DEFAULTS.compiling if discover()[variant.exercise].compiled else 0.0
        if not self._pipe.poll(LIMITS.submission + ENDING + compiling):
            self.close()
            return Told(endless=True)
        try:
            return self._pipe.recv()  # type: ignore[no-any-return]
        except EOFError:
            self.close()
            return Told(lost="the process that judges has died")

    def _start(self) -> None:
        """Start the process, and wait until it can take a submission."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=False)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def close(self) -> None:
        """End the process, and what it has started."""
        if self._process is None or self._pipe is None or self._process.pid is None:
            return
        everyone = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.join()
        for one in everyone:
            if one.is_running():
                one.kill()
        self._pipe.close()
        self._process = self._pipe = None
