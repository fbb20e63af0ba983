"""The interface of a world: ranks that run an answer and return its outcome.

Worlds differ in where their ranks live: those of :mod:`headcount.launch.process_world` are
processes, and those of :mod:`headcount.simulation.simulation_world` are simulated in one.  Whoever
runs a job knows nothing below :class:`World`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headcount.core.codec import LONG_TEXT, MANY_PARTS
from headcount.core.program import Program
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Diagnosis, Failure, amount
from headcount.core.wire import AT_RETURN
from headcount.trace.message_matcher import Follower
from headcount.trace.replicas import ReplicaComparison
from headcount.trace.trace import Trace
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = [
    "ArgumentChange",
    "Delay",
    "Job",
    "Kill",
    "Outcome",
    "Pause",
    "RankResult",
    "ScriptFollower",
    "World",
    "WorldSpec",
    "omission",
]


@dataclass(frozen=True)
class Kill:
    """The rank that is killed in a call, and the moment.

    Attributes:
        rank: the rank.
        step: the step at which it dies, see :class:`headcount.core.wire.StepCount`: 0 as it enters
            the function, :data:`~headcount.core.wire.AT_RETURN` as it returns; it dies then, too,
            if it makes fewer steps.
    """

    rank: int
    step: int

    def __str__(self) -> str:
        if self.step == 0:
            return f"rank {self.rank} is killed as it enters"
        if self.step == AT_RETURN:
            return f"rank {self.rank} is killed as it returns"
        return f"rank {self.rank} is killed at its step {self.step}"


@dataclass(frozen=True)
class Delay:
    """A rank that enters the function late, or stops in it, and for how many seconds."""

    rank: int
    seconds: float


@dataclass(frozen=True)
class Pause:
    """What the judge does while all ranks wait for it, before it lets them go on.

    What a rank counts, or reads off its own clock, is its own word.  Here the judge measures.

    Attributes:
        seconds: how long it lets them wait, by its own clock.
        weighs: whether it asks the kernel how much memory each rank's process has.
        tells: returns what the ranks are told then, and could not know before.
    """

    seconds: float = 0.0
    weighs: bool = False
    tells: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Job:
    """One call of an answer on every rank.

    Attributes:
        entry: the name to call.
        arguments: one tuple of arguments per rank.
        adapter: a pickled function ``adapter(entry, *arguments)`` that makes
            the call; empty to call the entry itself.
        allowed: names of the collectives that may be called; None allows all.
        strict: whether mistakes with buffers are made to show every time, see
            :class:`headcount.rank.recorder.Recorder`.
        policy: chooses the messages that wildcard receives get.
        watched: elements of the largest tensor whose contents are recorded; 0
            for none.
        seconds: the time limit of the call, by the wall clock.
        effort: seconds of processor time that a rank may use, or that all may
            sleep, before the call fails; see
            :class:`headcount.launch.watchdog.CpuWatchdog`.
        output_limit: bytes that a rank may print.
        answer_limit: bytes of tensors that a rank may send back.
        killed: the rank that is killed, and when; the world cannot be used again then.
        late: the ranks that enter late, and how late; no world can be used again after that.
        held: the ranks that stop between two calls of the store, and for how long.
        network: α and β of simulated ranks, ``None`` for real ones.
        pauses: what is done each time that all ranks pause; they go on at once after these.
        follows: whether ranks that return nothing tell what became of the arguments that the
            program is bound to.
        replicas: whether what ranks hold of their replicas is compared after each step of an
            optimizer.
        follower: follows a person's own script, on which there are no limits.
    """

    entry: str
    arguments: tuple[tuple[Any, ...], ...]
    adapter: bytes = b""
    allowed: frozenset[str] | None = frozenset()
    strict: bool = True
    policy: WildcardPolicy = field(default_factory=WildcardPolicy)
    watched: int = 0
    seconds: float = DEFAULTS.busy * DEFAULTS.call
    effort: float = math.inf
    output_limit: int = DEFAULTS.output
    answer_limit: int = DEFAULTS.answer
    killed: Kill | None = None
    late: tuple[Delay, ...] = ()
    held: tuple[Delay, ...] = ()
    network: tuple[float, float] | None = None
    pauses: tuple[Pause, ...] = ()
    follows: bool = False
    replicas: bool = False
    follower: ScriptFollower | None = None


@dataclass(frozen=True)
class ArgumentChange:
    """An argument that a call has changed.

    Attributes:
        name: of the parameter.
        before: its value, with a module as the tensors that it has, by name.
        after: the same after the call.
    """

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class RankResult:
    """The result of one rank; one that was killed has its arguments as they were, and no value.

    Attributes:
        value: the returned value.
        arguments: the rank's arguments as they are after the call.
        aliases: positions of arguments that share memory with the value, or with each other if it
            is ``None``.
        finished: when the call returned, in nanoseconds of the monotonic clock.
        replaced: positions of arguments that hold other tensors than before the call.
        omitted: the part of the value that was too large to be sent; empty if nothing was.
        drew: whether it has drawn random numbers that depend on the seed of the world.
        changes: what became of the arguments that the program is bound to; of a rank that
            returned nothing, and where the job follows them.
        unseen: the names of those whose changes cannot be told.
        nbytes: the bytes in which it has come.
    """

    value: Any
    arguments: tuple[Any, ...]
    aliases: tuple[int, ...] = ()
    finished: int = 0
    replaced: tuple[int, ...] = ()
    omitted: str = ""
    drew: bool = False
    changes: tuple[ArgumentChange, ...] = ()
    unseen: tuple[str, ...] = ()
    nbytes: int = 0


def omission(results: Sequence[RankResult], limit: int) -> Failure | None:
    """Return a failure if a rank has returned more than ``limit`` bytes, or too many parts.

    A check goes on without them, since no right answer is that large.  A caller that asked for
    the results themselves must not take their placeholders for them.
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
    """The outcome of a job: a result from every rank, or a failure.

    Attributes:
        results: by rank; empty if a rank has not returned.  After a failure that was found when
            every rank had (a request never waited for, say) both are there.
        failure: why the job failed, if it did.
        trace: the record of the messages.
        output: what each rank printed.
        seconds: how long the job took, by the wall clock.
        moved: bytes that the kernel counted on the network; None outside a sandbox.
        reported: bytes in which the ranks told of all this, where there is a limit on them.
        replicas: what was compared of replicas, if the job asks for it.
    """

    results: tuple[RankResult, ...]
    failure: Failure | None
    trace: Trace
    output: tuple[str, ...]
    seconds: float
    moved: int | None = None
    reported: int = 0
    replicas: ReplicaComparison | None = None


class ScriptFollower(Follower, Protocol):
    """Follows the run of a person's own script."""

    def printed(self, rank: int, data: bytes) -> None:
        """Take what a rank has printed."""

    def leftover(self, failure: Failure) -> None:
        """Take what is wrong although every rank has ended, such as an unreceived message."""

    def stopped(self, number: int) -> None:
        """Take note that a signal has stopped the run."""

    def asks(self) -> bool:
        """Return whether somebody has asked where the ranks are since this was last called."""
        ...

    def shows(self, where: Failure, silent: float) -> None:
        """Show where the ranks are, which have reported nothing for so many seconds."""


class World(Protocol):
    """Ranks with an answer's code loaded, ready for calls."""

    @property
    def usable(self) -> bool:
        """Whether it can run another job; after most failures it cannot."""
        ...

    def run(self, job: Job) -> Outcome:
        """Run a job on every rank, and return when all have ended or can never end."""
        ...

    def close(self) -> None:
        """End every rank and every process that it left behind."""
        ...


@dataclass(frozen=True, kw_only=True)
class WorldSpec:
    """The properties of a world that is to be opened.

    Attributes:
        program: the code of the answer.
        size: the largest number of ranks of its jobs.
        smaller: other numbers of ranks that jobs may be for.
        memory: bytes that each rank may allocate, or all simulated ranks together.
        wanted: the names that jobs will call; empty for all that the program has.
        subgroups: whether the ranks may make groups.
        collectives: whether jobs may call collectives.
        storing: whether the program may put values of its own into the store.
        seed: the seed of the random numbers that the program draws, on each rank its own.
        set_orders: whether each real rank takes sets in an order of its own.
        until: the time on the monotonic clock after which a program has a second to load.
        weighed: whether a job asks for the memory of the ranks.
    """

    program: Program
    size: int
    smaller: tuple[int, ...] = ()
    memory: int = DEFAULTS.rank_memory
    wanted: Collection[str] = ()
    subgroups: bool = True
    collectives: bool = True
    storing: bool = True
    seed: int = 0
    set_orders: bool = False
    until: float = math.inf
    weighed: bool = False
