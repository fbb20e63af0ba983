"""The judge's side of a simulation: the request for it, and the outcome of its ranks.

All simulated ranks run in one process, forked like a rank's (:mod:`headcount.simulation.process`),
so that whatever the student's code does to torch or Python ends with it.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader
from types import MappingProxyType
from typing import Any

import msgspec

from headcount.core.codec import STRUCTURE, pack, unpack
from headcount.core.errors import RequestError
from headcount.core.events import Event, Matched
from headcount.core.program import Module, Program
from headcount.core.random_numbers import rank_seed
from headcount.core.resource_limits import DEFAULTS
from headcount.core.values import short, with_article
from headcount.core.verdict import Diagnosis, Failure, amount
from headcount.core.wire import (
    Answered,
    BrokenFrame,
    Raised,
    Refused,
    Simulate,
    Simulated,
    Tally,
)
from headcount.launch.event_validation import EventValidator
from headcount.launch.frame_channel import FrameChannel, messages
from headcount.launch.launchers import Launcher, ProcessGroupHandle
from headcount.launch.root_cause import RootCause, not_understood
from headcount.launch.world import Job, RankResult
from headcount.simulation.algorithms import packed
from headcount.simulation.clusters import Cluster
from headcount.simulation.network import seconds_of
from headcount.trace.deadlock import deadlock
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.trace import Trace
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = ["EVENTS", "MEMORY", "MODULES", "Simulation", "SimulationProcess", "simulate"]

#: Bytes that a simulation may allocate: thousands of ranks, and the tensors of all.
MEMORY = DEFAULTS.simulation_memory

#: Bytes that all ranks together may answer.
ANSWERS = DEFAULTS.simulated_answers

#: Events of a job's record; a job that has more fails.
EVENTS = 50_000

#: Bytes that an event takes at most, on average.
_EVENT = 512

#: Seconds in which a process that has closed its socket must have ended.
_LEAVE = 2.0

#: The modules that simulate ranks, which a sandbox does not show: they are sent to the processes
#: that simulate, and no other process of a submission's has them.
MODULES = (
    "headcount.simulation",
    "headcount.simulation.builtin",
    "headcount.simulation.calls",
    "headcount.simulation.clusters",
    "headcount.simulation.group",
    "headcount.simulation.network",
    "headcount.simulation.process",
    "headcount.simulation.recording",
    "headcount.simulation.scheduler",
    "headcount.simulation.world",
    "headcount.trace",
    "headcount.trace.message_matcher",
    "headcount.trace.replicas",
    "headcount.trace.trace",
    "headcount.trace.wait_state",
    "headcount.trace.wildcard_schedules",
)

#: Bytes that are read at a time of what the ranks print.
_PIECE = 1 << 16

#: Receives from any rank get what was sent first.
_FIRST_SENT = WildcardPolicy()


@dataclass(frozen=True)
class Simulation:
    """The outcome of a simulation.

    Attributes:
        results: by rank, if all have returned.
        failure: why they have not, or what is wrong although they have; None if nothing is.
        seconds: virtual time at which the last rank returned.
        ticks: the same, exactly, see :mod:`headcount.simulation.network`.
        messages, bytes: the numbers of messages and bytes received.
        output: what all ranks printed, in the order of virtual time.
        trace: the record of every message, if it was asked for and is not too long.
        overflow: whether the record is too long.
        tally: what each rank has sent, if it was counted.
        warnings: calls that break no rule, and that the student probably meant otherwise.
        drew: whether a rank has drawn random numbers that depend on the seed.
        calls: what the program has called, without the messages of which built-in collectives
            consist; known if a trace was asked for.
    """

    results: tuple[RankResult, ...]
    failure: Failure | None
    ticks: int = 0
    messages: int = 0
    bytes: int = 0
    output: str = ""
    trace: Trace | None = None
    overflow: bool = False
    tally: Tally | None = None
    warnings: tuple[str, ...] = ()
    calls: Trace | None = None
    drew: bool = False

    @property
    def seconds(self) -> float:
        """Virtual time at which the last rank returned."""
        return seconds_of(self.ticks)


def simulate(launcher: Launcher, *given: Any, **options: Any) -> Simulation:
    """Run a job in a process of its own, as :meth:`SimulationProcess.begin` does.

    Raises:
        RequestError, WorldError: as of :class:`SimulationProcess`.
    """
    with SimulationProcess(launcher) as process:
        return process.begin(*given, **options)()


class SimulationProcess:
    """A process of simulated ranks, which can run one program after the other.

    What a program does to torch or Python stays, so only programs that can be trusted share one.

    Args:
        launcher: starts the process.

    Raises:
        WorldError: the process cannot be started.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._handle = launcher.launch(1)
        self._channel = FrameChannel(self._handle.controls[0])
        os.set_blocking(self._handle.outputs[0], False)
        self._usable = True

    def __enter__(self) -> SimulationProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._launcher.settle()

    @property
    def usable(self) -> bool:
        """Whether it can run another program: it has answered all requests so far."""
        return self._usable

    def close(self) -> None:
        """End the process."""
        self._handle.close()

    def begin(
        self,
        program: Program,
        job: Job,
        cluster: Cluster,
        *,
        eager: int = -1,
        recorded: int = 0,
        counted: bool = False,
        answered: bool = True,
        memory: int = MEMORY,
        algorithms: Mapping[str, str] = MappingProxyType({}),
        policy: WildcardPolicy = _FIRST_SENT,
        seed: int = 0,
    ) -> Callable[[], Simulation]:
        """Begin to run a job on simulated ranks, and return a function that waits for its end.

        The function must be called before the next job begins.

        Args:
            program: the answer's code.
            job: the call, with arguments of each rank; its ``seconds`` are of the wall clock.
            cluster: gives the costs of messages.
            eager: bytes up to which a message leaves its buffer at once, whether or not a
                receive is posted; −1 for none.
            recorded: the largest number of events of a trace; 0 for no trace.
            counted: whether to count what each rank sends.
            answered: whether to return what the ranks hold; otherwise ``results`` is empty.
            memory: bytes that all ranks together may allocate.
            algorithms: names, by collective, of :mod:`headcount.simulation.algorithms`;
                what is missing has the default.
            policy: says what receives from any rank get, in a run with a trace; where it says
                nothing, the message that was sent first in virtual time.
            seed: the seed of the random numbers that the program draws, on each rank its own.

        Raises:
            RequestError: there is no such collective, or no such algorithm of it, or the
                cluster cannot have so many ranks, or cannot send eager messages.
        """
        functions = packed(algorithms, job.allowed)
        _require_network(cluster, len(job.arguments), eager)
        environment = self._launcher.environment
        request = Simulate(
            program=program.to_bytes(),
            entry=job.entry,
            adapter=job.adapter,
            arguments=_packed(job.arguments),
            cluster=msgspec.msgpack.encode(cluster),
            eager=eager,
            recorded=recorded,
            counted=counted,
            answered=answered,
            memory=memory,
            path=environment.path,
            folder=environment.folder,
            sealed=environment.sealed,
            answer_limit=job.answer_limit,
            answers=min(ANSWERS, 32 * job.answer_limit),
            allowed=None if job.allowed is None else sorted(job.allowed),
            algorithms=functions,
            modules=_modules() if environment.sealed else [],
            seeds=[rank_seed(seed, rank) for rank in range(len(job.arguments))],
            forced=[(*receive, source) for receive, source in policy.forced.items()],
            lowest=policy.lowest,
        )
        listener = _Listener(self._handle, self._channel, job)
        listener.ask(request)

        def finish() -> Simulation:
            listener.listen()
            self._usable = listener.failure is None
            return _read(listener, request, len(job.arguments))

        return finish


@functools.cache
def _modules() -> list[Module]:
    """Return the modules that simulate ranks, as data."""
    found = []
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        code, package = spec.loader.get_code(spec.name), spec.submodule_search_locations is not None
        found.append(
            Module(spec.name, file=spec.origin or "", package=package, code=marshal.dumps(code))
        )
    return found


def _require_network(cluster: Cluster, size: int, eager: int) -> None:
    """Check that the cluster can be made, before a process is started."""
    network = cluster.network(size)
    # an eager message is under way before the time of its arrival is known
    if eager >= 0 and hasattr(network, "following"):
        raise RequestError(
            "eager messages need links that carry one message at a time; this cluster shares"
            " them: choose sharing='fifo', or no eager messages"
        )


def _packed(arguments: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return the packed arguments of every rank; the same objects are packed once."""
    known: dict[tuple[int, ...], bytes] = {}
    packed = []
    for one in arguments:
        key = tuple(map(id, one))
        if key not in known:
            known[key] = pack(one)
        packed.append(known[key])
    return packed


class _Listener:
    """The reader of what the process sends: its answer, its output, and its end."""

    def __init__(self, handle: ProcessGroupHandle, channel: FrameChannel, job: Job) -> None:
        self._handle = handle
        self._channel = channel
        self._until = time.monotonic() + job.seconds
        self._seconds = job.seconds
        self._limit = job.output_limit
        self._printed = bytearray()
        self.failure: Failure | None = None
        self.answer: Simulated | None = None
        self.results: list[RankResult] = []
        self._job = job
        self._received, self._most = 0, min(ANSWERS, 32 * job.answer_limit)

    @property
    def output(self) -> str:
        """What the ranks have printed."""
        return self._printed.decode("utf-8", "replace")

    def ask(self, request: Simulate) -> None:
        """Send the request."""
        self._channel.limit(STRUCTURE + 4 * request.answer_limit + _EVENT * request.recorded)
        self._channel.send(request)

    def listen(self) -> None:
        """Wait for the answer or for a failure."""
        printed = self._handle.outputs[0]
        try:
            self._listen(printed)
            # all output from before the answer, or before the end, can be read by now
            while self._read_output(printed):
                pass
        except TimeoutError:
            self.failure = Failure(Diagnosis.TIMEOUT, f"no end after {self._seconds:g} s")
        except Refused as error:
            self.failure = Failure(error.diagnosis, str(error))
        except BrokenFrame as error:
            self.failure = _invalid(error)

    def _listen(self, printed: int) -> None:
        beside = {printed: lambda: self._read_output(printed) != b""}
        for message in messages(self._channel, self._until, beside):
            self._take(message)
            if self.answer is not None or self.failure is not None:
                return
        self.failure = self._gone()

    def _take(self, message: object) -> None:
        if isinstance(message, Simulated):
            self.answer = message
        elif isinstance(message, Answered):
            size, nbytes = len(self._job.arguments), len(message.value) + len(message.arguments)
            self._received += nbytes
            if len(self.results) == size:
                raise BrokenFrame(f"more than the {size} answers of its ranks")
            if self._received > self._most:
                raise BrokenFrame(f"answers of over {self._most} bytes, which are allowed")
            after = unpack(message.arguments, limit=self._job.answer_limit)
            if not isinstance(after, tuple):
                kind = with_article(type(after).__name__)
                raise BrokenFrame(f"{kind} as the arguments of a rank, which are a tuple")
            value = unpack(message.value, limit=self._job.answer_limit)
            self.results.append(RankResult(value, after, omitted=message.omitted, nbytes=nbytes))
        elif isinstance(message, Raised):
            if message.memory:
                text = "the ranks need more memory than all of them may have together"
                self.failure = Failure(Diagnosis.MEMORY_LIMIT, text)
            else:
                # the process runs the student's code, which may end the simulator in any way
                error = short(f"{message.kind}: {message.message}", 200)
                text = f"the process of all ranks ends with {error}"
                self.failure = Failure(Diagnosis.MALFORMED_REPORT, text)
        else:
            kind = type(message).__name__
            raise BrokenFrame(f"a {kind} frame, where a simulation sends Answered and Simulated")

    def _read_output(self, fd: int) -> bytes | None:
        """Read what has been printed; return None if nothing is there, and no bytes at the end.

        Raises:
            Refused: it is too much.
        """
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            return None
        self._printed += data
        if len(self._printed) > self._limit:
            del self._printed[self._limit :]
            what = f"the ranks print more than {self._limit // 1024} kB"
            raise Refused(what, Diagnosis.OUTPUT_LIMIT)
        return data

    def _gone(self) -> Failure:
        causes = RootCause(MessageMatcher(1))
        patience = max(0.1, min(_LEAVE, self._until - time.monotonic()))
        causes.ended(0, self._handle.status(0, patience), None, self.output)
        found = causes.first()
        assert found is not None
        return Failure(found.diagnosis, f"the process of all ranks: {found.message}")


def _read(listener: _Listener, request: Simulate, size: int) -> Simulation:
    answer = listener.answer
    if answer is None or listener.failure is not None:
        return Simulation((), listener.failure, output=listener.output)
    try:
        results = listener.results
        if answer.excess:
            return Simulation((), _too_much(answer.excess, request.answers), output=listener.output)
        _require_valid(answer, request, size, len(results))
        allowed = None if request.allowed is None else frozenset(request.allowed)
        matcher = _matched(answer.reports, answer.returned, size, allowed)
        failure = _failure(answer, matcher)
        return Simulation(
            tuple(results),
            failure,
            max(map(int, answer.ended), default=0),
            answer.messages,
            answer.nbytes,
            listener.output,
            _trace(answer, size) if answer.events else None,
            answer.overflow,
            answer.tally,
            matcher.warnings,
            matcher.trace() if answer.whole else None,
            answer.drew,
        )
    except Exception as error:
        # the student's code runs in the process that sends this: it is data, whatever it does here
        return Simulation((), _invalid(error), output=listener.output)


def _invalid(error: Exception) -> Failure:
    """Return the failure of a run whose process has sent what no simulation sends."""
    if not isinstance(error, BrokenFrame):
        return not_understood("the process of all ranks", error)
    message = f"the process of all ranks has sent what no simulation sends: {error}"
    return Failure(Diagnosis.TAMPERING, message)


def _require_valid(answer: Simulated, request: Simulate, size: int, results: int) -> None:
    """Check that an answer can be computed with.

    Raises:
        BrokenFrame: the simulation would never send it.
    """
    reporting = (rank for rank, _ in (*answer.events, *answer.reports))
    for rank in (*answer.returned, *answer.raised, *reporting):
        if not 0 <= rank < size:
            raise BrokenFrame(f"a report of rank {rank}, where there are {size} ranks")
    for text in answer.ended:
        if not (len(text) < 100 and text.isdecimal()):
            raise BrokenFrame(f"{short(text, 40)!r} as the time at which a rank returned")
    if len(answer.ended) == size and results != (size if request.answered else 0):
        raise BrokenFrame(f"{results} results of {size} ranks")
    recorded = max(len(answer.events), len(answer.reports) if answer.whole else 0)
    if recorded > request.recorded:
        raise BrokenFrame(f"a record of {recorded} events, where {request.recorded} were asked for")


def _too_much(nbytes: int, most: int) -> Failure:
    return Failure(
        Diagnosis.OUTPUT_LIMIT,
        f"the ranks return more than {amount(nbytes - 1)} in all, and up to {amount(most)} can"
        " be brought back; return less from each, such as a sum or a part, or simulate fewer",
    )


def _trace(answer: Simulated, size: int) -> Trace:
    """Return the record of a run, from the events that its ranks have reported."""
    matcher = _matched(answer.events, answer.returned, size, None, inside=True)
    ends = [span.left for span in matcher.call_spans if span.left is not None]
    times = [op.posted for operations in matcher.operations for op in operations]
    matcher.close(max([*ends, *times], default=0))
    return matcher.trace()


def _matched(
    events: Iterable[tuple[int, Event | Matched]],
    returned: Iterable[int],
    size: int,
    allowed: frozenset[str] | None,
    inside: bool = False,
) -> MessageMatcher:
    """Return what ranks have reported, matched.

    Args:
        events: what each rank has reported, in the order of virtual time.
        returned: the ranks that have returned after that.
        size: the number of ranks.
        allowed, inside: as of :class:`EventValidator`.

    Raises:
        BrokenFrame: no recorder would have reported it.
    """
    matcher = MessageMatcher(size)
    validator = EventValidator(matcher, allowed, subgroups=True, watched=False, inside=inside)
    for rank, event in events:
        if not isinstance(event, Matched):
            validator.validate(rank, event)
            matcher.take(rank, event)
            continue
        receive = next(iter(matcher.operations[rank][event.op : event.op + 1]), None)
        if receive is None or event.source not in matcher.candidates(receive):
            raise BrokenFrame(
                f"operation {event.op} of rank {rank} as the receive of a message of rank"
                f" {event.source}, which has sent none that fits"
            )
        matcher.resolve(receive, event.source)
    for rank in returned:
        matcher.end(rank)
    return matcher


def _failure(answer: Simulated, matcher: MessageMatcher) -> Failure | None:
    """Return what went wrong: ranks raised, wait for each other, or left something over."""
    causes = RootCause(matcher)
    for rank, raised in answer.raised.items():
        causes.raised(rank, raised)
    found = causes.first() or deadlock(matcher)
    if len(answer.ended) == matcher.size:
        return found or causes.leftover()
    if found is None:
        raise BrokenFrame("an end without a result of every rank, and without a reason")
    return found
