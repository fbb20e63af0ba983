"""What a world is: ranks that run an answer, and tell what came of it.

Worlds differ in where their ranks live (processes on gloo here; others can
follow).  The judge sees :class:`World`, and nothing below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from grader.core.codec import LONG_TEXT, MANY_PARTS
from grader.core.resource_limits import DEFAULTS
from grader.core.values import amount
from grader.core.verdict import Diagnosis, Failure
from grader.trace.trace import Trace
from grader.trace.wildcard_schedules import WildcardPolicy

__all__ = ["Job", "Outcome", "RankResult", "World", "omission"]


@dataclass(frozen=True)
class Job:
    """One call of an answer on every rank.

    Attributes:
        entry: the name to call.
        arguments: one tuple of arguments per rank.
        adapter: a pickled function ``adapter(entry, *arguments)`` that makes
            the call; empty to call the entry itself.
        allowed: names of the collectives that may be called; ``None`` is all.
        strict: make mistakes with buffers show every time, see
            :class:`grader.rank.recorder.Recorder`.
        policy: which messages wildcard receives get.
        watched: elements of the largest tensor whose contents are recorded; 0
            for none.
        seconds: of wall clock after which the call has failed.
        effort: seconds of processor time that a rank may use, or that all may
            sleep, before it has; see :class:`grader.launch.supervisor.CpuWatchdog`.
        output_limit: bytes that a rank may print.
        answer_limit: bytes of a tensor that is still sent back.
        library: a library, compiled from the answer, that has the entry; see
            :mod:`grader.launch.cpp_build`.
    """

    entry: str
    arguments: tuple[tuple[Any, ...], ...]
    adapter: bytes = b""
    allowed: frozenset[str] | None = frozenset()
    strict: bool = True
    policy: WildcardPolicy = field(default_factory=WildcardPolicy)
    watched: int = 0
    seconds: float = DEFAULTS.call
    effort: float = math.inf
    output_limit: int = DEFAULTS.output
    answer_limit: int = DEFAULTS.answer
    library: str = ""


@dataclass(frozen=True)
class RankResult:
    """What one rank gave back.

    Attributes:
        value: what the call returned.
        arguments: the rank's arguments as they are after the call.
        aliases: positions of arguments that share memory with the value.
        finished: nanoseconds, monotonic, when the call returned.
        replaced: positions of arguments in which other tensors stand than before the call.
        omitted: what of the value was too much to be sent; empty if nothing was.
    """

    value: Any
    arguments: tuple[Any, ...]
    aliases: tuple[int, ...] = ()
    finished: int = 0
    replaced: tuple[int, ...] = ()
    omitted: str = ""


def omission(results: Sequence[RankResult], limit: int) -> Failure | None:
    """Why results are not whole: a rank has returned more than ``limit`` bytes, or too many parts.

    A check goes on without, since no right answer comes near; who asked for the results
    themselves must not take what stands in their place for them.
    """
    for rank, result in enumerate(results):
        if result.omitted:
            return Failure(
                Diagnosis.OUTPUT_LIMIT,
                f"rank {rank} returns {result.omitted}, which is too much to be brought back:"
                f" {amount(limit)} of tensors, {LONG_TEXT:,} characters of a text and"
                f" {MANY_PARTS:,} parts are the most; return less, such as a sum or a part",
                rank,
            )
    return None


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a result from every rank, or a failure.

    ``results`` is empty after a failure that ended the world; after one that
    was found when every rank had returned (a request never waited for, say)
    both are there.  ``moved`` is how many bytes the kernel counted on the
    network; ``None`` where there is no sandbox to count in.
    """

    results: tuple[RankResult, ...]
    failure: Failure | None
    trace: Trace
    output: tuple[str, ...]
    seconds: float
    moved: int | None = None


class World(Protocol):
    """Ranks with an answer's code loaded, ready for calls."""

    @property
    def size(self) -> int:
        """How many ranks it has."""
        ...

    @property
    def usable(self) -> bool:
        """Whether it can run another job; after a failure it cannot."""
        ...

    def run(self, job: Job) -> Outcome:
        """Run a job on every rank; returns when all have ended or can never end."""
        ...

    def close(self) -> None:
        """End every rank and what it left behind."""
        ...
