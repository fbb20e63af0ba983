"""A world of processes, one per rank, and the supervisor that watches them.

The supervisor reads from the ranks until they have all ended, or can never end.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import signal
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import msgspec
import psutil

from grader.core.codec import STRUCTURE, pack, unpack
from grader.core.errors import RequestError, WorldError, shortage
from grader.core.events import Event, Inspected, Paused
from grader.core.program import Program
from grader.core.random_numbers import seed_for_wire
from grader.core.resource_limits import DEFAULTS
from grader.core.verdict import Diagnosis, Failure, Site
from grader.core.wire import (
    BrokenFrame,
    Inspect,
    Joined,
    Load,
    Put,
    Raised,
    Ready,
    Refused,
    Resolved,
    Resumed,
    Returned,
    RunCall,
    Setup,
    StepCount,
)
from grader.exercise.cases import Pause
from grader.launch.backends import MpiJob, entry_of, require_backend
from grader.launch.event_validation import EventValidator
from grader.launch.frame_channel import FrameChannel
from grader.launch.kernel_counters import Counts, contradiction
from grader.launch.launchers import Launcher, ProcessGroupHandle
from grader.launch.root_cause import RootCause, not_understood, site_in_dump
from grader.launch.world import ArgumentChange, Job, Outcome, RankResult
from grader.rank.rank_store import RankStoreServer
from grader.submission.submission import Submission
from grader.trace.deadlock import deadlock, quiescent, stuck, waiting
from grader.trace.message_matcher import MessageMatcher
from grader.trace.trace import PauseSpan, Trace

__all__ = [
    "SETUP_SECONDS",
    "CpuWatchdog",
    "Printed",
    "ProcessWorld",
    "Supervisor",
    "largest_world",
]


# The output of ranks. -------------------------------------------------------------

#: The lines that the C++ runtime prints when gloo aborts a rank over a message that does not
#: fit.  Whether they are printed before the world is ended is chance, and the failure says
#: better what they mean.
_TERMINATE = re.compile(r"terminate called after throwing .*\n(?:  what\(\): .*\n?)?")


class Printed:
    """The output of each rank, up to a limit.

    Args:
        size: the number of ranks.
        limit: bytes that are kept of each rank's.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.limit = limit
        self._bytes = [bytearray() for _ in range(size)]

    def add(self, rank: int, data: bytes) -> bool:
        """Add a rank's output, and return whether that first exceeds the limit."""
        printed = self._bytes[rank]
        if len(printed) > self.limit:
            return False
        printed += data
        return len(printed) > self.limit

    def by(self, rank: int) -> str:
        """Return what was kept of a rank's output."""
        return bytes(self._bytes[rank]).decode("utf-8", "replace")

    def texts(self) -> tuple[str, ...]:
        """Return the output of each rank, in rank order."""
        texts = (bytes(one[: self.limit]).decode("utf-8", "replace") for one in self._bytes)
        return tuple(_TERMINATE.sub("", text) for text in texts)


# Whether ranks that report nothing will ever end. ---------------------------------
#
# A rank that waits for a message is known to wait.  A rank that does not wait, and does not end,
# either computes or sleeps, and the operating system knows which.  The processor time that it
# uses does not depend on how busy the machine is, so that limits on it can be far tighter than
# limits by the wall clock.

#: Seconds between two samples.
PERIOD = 0.1

#: States of a process that does nothing until an event wakes it up.
_ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_STOPPED, psutil.STATUS_IDLE)


@dataclass(frozen=True)
class _ProcessSample:
    """A process at one moment: its processor time in seconds, and whether it sleeps."""

    used: float
    asleep: bool


class CpuWatchdog:
    """A watchdog on the processor time of a world's processes during a call.

    Args:
        find: returns the processes that run, by rank.
        effort: seconds that a rank may compute, or that all ranks may sleep.
    """

    def __init__(self, find: Callable[[], Mapping[int, psutil.Process]], effort: float) -> None:
        self._find = find
        self._effort = effort
        self._processes: Mapping[int, psutil.Process] = {}
        self._first: dict[int, _ProcessSample] = {}
        self._last: dict[int, _ProcessSample] = {}
        self._looked = time.monotonic()
        self._slept = 0.0
        #: when to take the next sample, on the monotonic clock
        self.due = self._looked + PERIOD if effort < math.inf else math.inf

    def note_activity(self) -> None:
        """Note that a rank has reported something, so that not all sleep."""
        self._slept = 0.0

    def look(self, matcher: MessageMatcher) -> str:
        """Return why the ranks can no longer finish, or an empty string while they still can."""
        now = time.monotonic()
        self.due = now + PERIOD
        idle, self._looked = min(now - self._looked, 2 * PERIOD), now
        samples = self._samples()
        if not self._first:
            self._first, self._last = samples, samples
            return ""
        waits = waiting(matcher)
        for rank in samples.keys() & self._first.keys() - waits - matcher.ended:
            if samples[rank].used - self._first[rank].used > self._effort:
                return f"{self._effort:g} s of computing"
        still = samples == self._last and all(sample.asleep for sample in samples.values())
        self._slept = self._slept + idle if still else 0.0
        self._last = samples
        if self._slept > self._effort and len(waits | matcher.ended) < matcher.size:
            return f"{self._effort:g} s of sleep"
        return ""

    def _samples(self) -> dict[int, _ProcessSample]:
        if not self._processes:
            self._processes = self._find()
        samples = {}
        for rank, process in self._processes.items():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    asleep = process.status() in _ASLEEP
            except psutil.Error:  # it has ended, which the supervisor notices
                continue
            samples[rank] = _ProcessSample(times.user + times.system, asleep)
        return samples


# The memory of ranks. ---------------------------------------------------------------

#: What Linux counts of a process's memory, files that it maps aside; see ``proc_pid_status(5)``.
_MEMORY = ("RssAnon", "RssShmem", "VmSwap")


def memory_of(processes: Mapping[int, psutil.Process]) -> dict[int, int]:
    """Return the bytes of memory of each of these processes, as the kernel counts them.

    What a process has inherited counts, whether it has written to it or not: so the count grows
    by what it allocates, and only by that.  Where the kernel does not say, as on macOS, the
    result is empty.
    """
    found = {}
    for rank, process in processes.items():
        # one that has ended is noticed by the supervisor
        with suppress(OSError):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            if fields.keys() >= set(_MEMORY):
                found[rank] = sum(int(fields[name].split()[0]) << 10 for name in _MEMORY)
    return found


# The supervisor. ------------------------------------------------------------------

#: Seconds that the other ranks have to end or to wait once something is wrong, so that the cause
#: is named and not the failure that was reported first.
GRACE = 1.0

#: Seconds that ranks which hang have to dump the line where they are.
DUMP_PATIENCE = 0.5

#: Seconds between two questions to a rank about its threads: while it seems stuck, and some of
#: its threads may still act; and after which a rank that seems to compute is first asked.
ASK, SILENCE = 0.02, 0.1

#: Least seconds between two searches for ranks that seem stuck; not every message starts one.
PAUSE = 0.005

#: Seconds between two looks at processes whose launcher gives no notice of their ends.
POLL = 0.1

#: Seconds that the reading of what is left may take, since a hostile rank never stops writing.
DRAIN = 0.25

#: Seconds after which the deadlines are looked at again, however much there is to read.
TURN = 0.1

#: Seconds in which the end of a process must be known that has closed its socket.
HUNG_UP = 2.0

#: Bytes taken from a rank's fault handler; a dump of all threads has a few thousand.
FAULTS = 1 << 18

#: Largest size in bytes of a frame before the call.
LONGEST_BEFORE = 1 << 20

#: A job that stands for the time before the first call: ranks join, and load the program.
_STARTING = Job("", (), allowed=None, output_limit=1 << 20)

#: The same for ranks that are weighed before they run a line of it.
_STARTING_WEIGHED = replace(_STARTING, pauses=(Pause(weighs=True),))


class Supervisor:
    """The reader of everything that the ranks report; it decides when a job is over.

    Args:
        handle: the processes of the world.
        channels: their sockets, in rank order.
        resolve: sends a rank the source of a deferred receive: ``resolve(rank, op, source)``.
        put: takes an entry that a rank puts into the store: ``put(rank, entry)``.
        inspect: asks a rank what its threads do.
        resume: lets a rank go on that has paused, and tells it a packed value.
        stored: the keys of the store that have values.
    """

    def __init__(
        self,
        handle: ProcessGroupHandle,
        channels: Sequence[FrameChannel],
        resolve: Callable[[int, int, int], None],
        put: Callable[[int, Put], None],
        inspect: Callable[[int], None],
        resume: Callable[[int, bytes], None],
        stored: Container[str] = (),
    ) -> None:
        self.handle = handle
        #: the number of ranks that are listened to; those after them wait
        self.size = len(channels)
        self._channels = channels
        self._resolve = resolve
        self._put = put
        self._inspect = inspect
        self._resume = resume
        self._stored = stored
        #: by rank, the bytes of its process before it ran a line of the program
        self._weights: dict[int, int] = {}
        self.subgroups = True
        #: whether ranks are weighed before they run a line of the program
        self.weighed = False
        self._lost: set[int] = set()
        #: the ranks that have closed their sockets, and when they count as gone
        self._hung_up: dict[int, float] = {}
        self._dumps = [b""] * self.size
        self._selector = selectors.DefaultSelector()
        for rank in range(self.size):
            os.set_blocking(handle.outputs[rank], False)
            os.set_blocking(handle.faults[rank], False)
            self._listen(rank)
        if handle.notices is not None:
            self._selector.register(handle.notices, selectors.EVENT_READ, ("notices", -1))
        self._joined: set[int] = set()
        self._ready: set[int] = set()
        self.matcher = MessageMatcher(self.size)
        self._views: list[dict[str, list[int]]] = [{} for _ in range(self.size)]
        self._begin(self.matcher, _STARTING, LONGEST_BEFORE)

    def _descriptors(self, rank: int) -> list[tuple[str, int]]:
        """Return the kind and the descriptor of each channel of a rank."""
        handle = self.handle
        return [
            ("control", self._channels[rank].fileno()),
            ("output", handle.outputs[rank]),
            ("faults", handle.faults[rank]),
        ]

    def _listen(self, rank: int) -> None:
        """Listen to a rank that is not listened to."""
        for kind, fd in self._descriptors(rank):
            events = self._channels[rank].events if kind == "control" else selectors.EVENT_READ
            self._selector.register(fd, events, (kind, rank))

    def tell(self, rank: int, message: msgspec.Struct) -> None:
        """Send a rank a message, now or when it reads; one that has ended is not told."""
        channel = self._channels[rank]
        channel.send(message)
        self._expect(rank, channel)

    def _expect(self, rank: int, channel: FrameChannel) -> None:
        """Wait for a rank to read, or no longer, if it is listened to."""
        key = self._selector.get_map().get(channel.fileno())
        if key is not None and key.events != channel.events:
            self._selector.modify(key.fileobj, channel.events, key.data)

    def _listen_to(self, size: int) -> None:
        """Listen to the first ``size`` ranks only, and forget the groups that there were."""
        for rank in range(len(self._channels)):
            for _, fd in self._descriptors(rank):
                self._forget(fd)
            if rank < size:
                self._listen(rank)
        self.size = size
        self._ready.clear()
        self.matcher = MessageMatcher(size)
        self._views = [{} for _ in range(size)]
        self._begin(self.matcher, _STARTING_WEIGHED if self.weighed else _STARTING, LONGEST_BEFORE)

    def _begin(self, matcher: MessageMatcher, job: Job, longest: int) -> None:
        """Begin to read from ranks that do ``job``, in frames of up to ``longest`` bytes."""
        matcher.know_groups_of(self.matcher)
        matcher.stored = self._stored
        self.matcher = matcher
        self._validator = EventValidator(
            matcher,
            job.allowed,
            self.subgroups,
            bool(job.watched),
            self._views,
            pauses=bool(job.pauses),
        )
        for channel in self._channels:
            channel.limit(longest)
        self.causes = RootCause(matcher)
        self._policy = job.policy
        self._pauses = iter(job.pauses)
        #: when each rank that pauses now has said so
        self._paused: dict[int, int] = {}
        #: what the judge does in this pause, once all ranks have come to it, and when it is over
        self._pause: Pause | None = None
        self._pause_ends = math.inf
        self._killed = job.killed
        if job.late is not None:
            matcher.late.add(job.late.rank)
        self._steps = StepCount(job.killed.step) if job.killed is not None else None
        self._replies: dict[int, Returned] = {}
        self._printed = Printed(self.size, job.output_limit)
        self._watchdog = CpuWatchdog(self.handle.processes, job.effort)
        now = time.monotonic()
        #: ranks that have been asked what their threads do, and have not yet answered
        self._asked: set[int] = set()
        #: when each rank last reported something by itself, and when it last answered
        self._heard = [now] * self.size
        self._answered = [-math.inf] * self.size
        self._asks = bool(job.entry)
        self._ask_again = now

    # The record. -------------------------------------------------------------

    @property
    def returned(self) -> bool:
        """Whether every rank has returned, except for one that was killed and is gone."""
        return len(self._replies.keys() | self.matcher.killed & self._lost) == self.size

    def replies(self) -> list[Returned | None]:
        """Return the ranks' answers, in rank order; None for one that was killed."""
        return [self._replies.get(rank) for rank in range(self.size)]

    def output(self) -> tuple[str, ...]:
        """Return the output of each rank."""
        return self._printed.texts()

    @property
    def reusable(self) -> bool:
        """Whether the ranks can be called again after a job that may have failed."""
        gone = any(rank < self.size for rank in self.handle.statuses)
        return self.causes.is_recoverable() and self.matcher.idle() and not gone

    # Waiting. ----------------------------------------------------------------

    def until_joined(self, seconds: float) -> Failure | None:
        """Wait until every rank has joined, and return a failure if one has not."""
        return self._until(lambda: len(self._joined) == self.size, seconds)

    def until_ready(self, size: int, seconds: float) -> Failure | None:
        """Wait until the first ``size`` ranks have loaded; return a failure if one has not.

        From now on, only these ranks are listened to.
        """
        self._listen_to(size)
        return self._until(lambda: len(self._ready) == size, seconds)

    def until_returned(self, matcher: MessageMatcher, job: Job) -> Failure | None:
        """Wait until a job is over, and return why it failed, if it did."""
        self._begin(matcher, job, 4 * job.answer_limit + STRUCTURE)
        failure = self._until(lambda: self.returned, job.seconds)
        self._drain()
        matcher.closed = time.monotonic_ns()
        if failure is None:
            failure = self.causes.first() or self.causes.leftover()
        return failure

    def _until(self, finished: Callable[[], bool], seconds: float) -> Failure | None:
        deadline = time.monotonic() + seconds
        grace: float | None = None
        while not finished():
            now = time.monotonic()
            if grace is None and self._something_wrong():
                grace = now + GRACE
            if grace is not None and (self._settled() or now >= min(grace, deadline)):
                break
            if now >= deadline:
                self._note_timeout(f"{seconds:g} s")
                break
            if now >= self._watchdog.due and (after := self._watchdog.look(self.matcher)):
                self._note_timeout(after)
                break
            until = min(deadline, grace or deadline, self._watchdog.due, self._ask())
            self._read(min(until, self._pause_ends) - now)
            self._go_on()
            self._match_wildcards()
        else:
            return None
        self._drain()
        for rank in sorted(self._hung_up.keys() - self._lost):
            self._lose(rank)
        return self.causes.first() or deadlock(self.matcher, certain=True)

    def _something_wrong(self) -> bool:
        return bool(self.causes.first()) or bool(stuck(self.matcher, certain=True))

    def _settled(self) -> bool:
        """Return whether every rank has ended or can never go on."""
        over = self.matcher.ended | set(stuck(self.matcher, certain=True))
        return len(over) == self.size or self.causes.urgent

    def _ask(self) -> float:
        """Ask ranks what their threads do, where it matters; return when to do so again."""
        now, due = time.monotonic(), math.inf
        if not self._asks:
            return due
        if now < self._ask_again:
            return self._ask_again
        self._ask_again = now + PAUSE
        matcher = self.matcher
        suspects = set(stuck(matcher))
        for rank in range(self.size):
            if rank in matcher.ended or rank in self._asked:
                continue
            seen = matcher.inspected[rank]
            if seen is not None and not seen.acting:
                continue
            # a rank that waits for no operation may wait for its own threads, but mostly it
            # computes; the longer nothing happens, the less often it is asked
            heard, pause = self._heard[rank], (now - self._heard[rank]) / 8
            if rank in suspects:
                moment = self._answered[rank] + max(ASK, pause)
            else:
                moment = max(heard, self._answered[rank]) + max(SILENCE, pause)
            if now < moment:
                due = min(due, moment)
                continue
            self._asked.add(rank)
            self._inspect(rank)
        return due

    def _go_on(self) -> None:
        """Let the ranks that have paused go on, once all have come and the pause is over."""
        if not self._paused or len(self._paused.keys() | self.matcher.ended) < self.size:
            return
        if self._pause is None:
            self._pause = next(self._pauses, Pause())
            self._pause_ends = time.monotonic() + self._pause.seconds
        if time.monotonic() < self._pause_ends:
            return
        pause, paused = self._pause, self._paused
        self._pause, self._paused, self._pause_ends = None, {}, math.inf
        now = memory_of(self.handle.processes()) if pause.weighs else {}
        if not self._asks:
            # a rank that has run the program before, in a smaller world, was weighed then
            self._weights = {rank: now[rank] for rank in paused if rank in now} | self._weights
        value = b"" if pause.tells is None else pack(pause.tells())
        for rank, began in paused.items():
            weight = self._weights.get(rank)
            grown = None if weight is None or rank not in now else now[rank] - weight
            self.matcher.pauses[rank].append(PauseSpan(began, time.monotonic_ns(), grown))
            self._resume(rank, value)

    def _match_wildcards(self) -> None:
        """Choose messages for wildcard receives, when nothing else can happen any more."""
        # one by one: a choice may let a rank go on, which may send another message that the next
        # receive could get; if no rank goes on, no event would come that makes the next choice
        while self._match_one():
            pass
        for resolution in self.matcher.take_resolutions():
            self._resolve(resolution.rank, resolution.op, resolution.source)

    def _match_one(self) -> bool:
        """Choose a message for one wildcard receive; return whether one was chosen."""
        receives = sorted(self.matcher.first_wildcards(), key=lambda op: (op.rank, op.number))
        candidates = [(receive, self.matcher.candidates(receive)) for receive in receives]
        ready = [(receive, sources) for receive, sources in candidates if sources]
        if not ready or not quiescent(self.matcher):
            return False
        self.matcher.resolve(*self._policy.choose(ready))
        return True

    # Reading. ----------------------------------------------------------------

    def _drain(self) -> None:
        """Read what has been written and not yet read."""
        until = time.monotonic() + DRAIN
        while self._read(0.0) and time.monotonic() < until:
            pass

    def _read(self, seconds: float) -> bool:
        """Wait up to ``seconds``, read once, and return whether a rank had written anything."""
        if self.handle.notices is None or self._hung_up.keys() - self._lost:
            seconds = min(seconds, POLL)
        any_data = self._read_ready(seconds)
        if self.handle.notices is None:
            self.handle.poll()
        for rank in sorted({*self.handle.statuses, *self._overdue()} - self._lost):
            if rank >= self.size:
                continue
            # its end counts only when all that it wrote is read, and it may have written
            # after the read above
            if any_data or self._read_ready(0.0):
                return True
            self._lose(rank)
        return any_data

    def _overdue(self) -> list[int]:
        """Return the ranks that count as gone, since they have hung up for so long."""
        if not self._hung_up:
            return []
        now = time.monotonic()
        return [rank for rank, until in self._hung_up.items() if now >= until]

    def _read_ready(self, seconds: float) -> bool:
        """Read once from all that is readable; return whether a rank had written anything."""
        ready = self._selector.select(max(seconds, 0.0))
        until = time.monotonic() + TURN
        any_data = False
        for key, events in ready:
            if time.monotonic() > until:
                return True  # what is left is still there the next time
            kind, rank = key.data
            if kind == "notices":
                self.handle.poll()
            elif kind == "control":
                any_data |= self._serve(rank, events)
            else:
                any_data |= self._read_pipe(key.fd, kind, rank)
        return any_data

    def _serve(self, rank: int, events: int) -> bool:
        """Send a rank what waits for it, and read what it has sent; return whether it had."""
        channel = self._channels[rank]
        if events & selectors.EVENT_WRITE:
            channel.flush()
            self._expect(rank, channel)
        if not events & selectors.EVENT_READ:
            return False
        came = channel.receive()
        if came is None:
            self._forget(channel.fileno())
            self._hung_up.setdefault(rank, time.monotonic() + HUNG_UP)
            self.handle.poll()
            return False
        try:
            for message in came:
                self._hear(rank, message)
        except Refused as error:
            self._forget(channel.fileno())
            self.causes.refused(rank, error.diagnosis, str(error))
        except BrokenFrame as error:
            self._forget(channel.fileno())
            self.causes.forged(rank, str(error))
        except WorldError:
            raise
        except Exception as error:
            # what comes from a rank is data; that the judge makes no sense of it ends this world
            # only, with a word of its own
            self._forget(channel.fileno())
            self.causes.not_understood(rank, error)
        return True

    def _forget(self, fd: int) -> None:
        """Stop reading from a descriptor."""
        with suppress(KeyError):
            self._selector.unregister(fd)

    def _read_pipe(self, fd: int, kind: str, rank: int) -> bool:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        self._watchdog.note_activity()
        if not data:
            self._forget(fd)
            return False
        if kind == "faults":
            self._dumps[rank] += data
            if len(self._dumps[rank]) > FAULTS:
                self._forget(fd)
                return False
        elif self._printed.add(rank, data):
            self.causes.flooded(rank, self._printed.limit)
            self._forget(fd)
            return False
        return True

    def _hear(self, rank: int, message: object) -> None:
        if isinstance(message, Inspected):
            self._validator.look(rank, message)
            self.matcher.take(rank, message)
            self._asked.discard(rank)
            self._answered[rank] = time.monotonic()
            return
        self._heard[rank] = time.monotonic()
        self._watchdog.note_activity()
        self._kill_if_due(rank, message)
        if isinstance(message, Event):
            self._validator.look(rank, message)
            self.matcher.take(rank, message)
            if isinstance(message, Paused):
                self._paused[rank] = time.monotonic_ns()
        elif isinstance(message, Put):
            self._put(rank, message)
        elif isinstance(message, Joined):
            if rank in self._joined:
                raise BrokenFrame("that it has joined, twice")
            self._joined.add(rank)
        elif rank in self.matcher.ended:
            self.causes.forged(rank, "a second answer")
        elif isinstance(message, Returned) and rank in self.matcher.killed:
            self.causes.forged(rank, "an answer after the step at which it stops to be killed")
        elif isinstance(message, Returned):
            self._replies[rank] = message
            self.matcher.end(rank)
        elif isinstance(message, Raised):
            if message.stage == "join":
                self._cannot_join(rank, message)
            self.matcher.end(rank)
            self.causes.raised(rank, message)
        elif isinstance(message, Ready):
            self._ready.add(rank)
        else:
            raise BrokenFrame("an answer to what nobody has asked")

    def _kill_if_due(self, rank: int, message: object) -> None:
        """Kill the rank that the job names, once it has come to the step at which it dies."""
        if self._killed is None or self._steps is None or rank != self._killed.rank:
            return
        if self._steps.reached(message) and rank not in self.matcher.killed:
            self.matcher.killed.add(rank)
            self.handle.signal(signal.SIGKILL, rank)

    def _cannot_join(self, rank: int, message: Raised) -> NoReturn:
        if rank in self._joined:
            raise BrokenFrame("that it cannot join, when it has joined")
        raise WorldError(f"rank {rank} cannot join: {message.kind}: {message.message}")

    def _lose(self, rank: int) -> None:
        """Note that the process of ``rank`` is gone."""
        if rank in self._lost:
            return
        self._lost.add(rank)
        for fd in (self.handle.outputs[rank], self.handle.faults[rank]):
            key = self._selector.get_map().get(fd)
            while key is not None and self._read_pipe(fd, *key.data):
                key = self._selector.get_map().get(fd)
        if rank in self.matcher.killed:
            self.matcher.end(rank, time.monotonic_ns())
        elif rank not in self.matcher.ended or rank in self._replies:
            self._replies.pop(rank, None)
            self.matcher.end(rank, time.monotonic_ns())
            status, printed = self.handle.statuses.get(rank), self._printed.by(rank)
            self.causes.ended(rank, status, self._dumped_site(rank), printed)

    def _note_timeout(self, after: str) -> None:
        """Note a time limit, with the lines at which the ranks that still run are."""
        still = waiting(self.matcher) | self.matcher.ended
        running = [rank for rank in range(self.size) if rank not in still]
        self._dumps = [b""] * self.size
        if hasattr(signal, "SIGUSR1"):
            self.handle.signal(signal.SIGUSR1)
            until = time.monotonic() + DUMP_PATIENCE
            while time.monotonic() < until and not all(map(self._dumped_site, running)):
                self._read(until - time.monotonic())
        sites = {rank: self._dumped_site(rank) for rank in running}
        self.causes.timed_out(running, sites, after)

    def _dumped_site(self, rank: int) -> Site | None:
        """Return the line in the dump of the rank's fault handler."""
        return site_in_dump(self._dumps[rank].decode("utf-8", "replace"))

    def close(self) -> None:
        """Stop reading from all ranks."""
        with suppress(KeyError, ValueError):
            self._selector.close()


# A world of processes. ------------------------------------------------------------

#: Seconds in which a rank must have joined its group and loaded the program.
SETUP_SECONDS = DEFAULTS.setup

#: Ranks with hash seeds of their own, where the program may depend on hashes.
OTHER_SEEDS = 2

#: Bytes of the store that a subgroup takes of each of its ranks, and for each of its peers: gloo
#: puts some 200 there, and 8 for each peer.
_ADDRESS, _PEER = 512, 16

#: Bytes that a rank may allocate, unless told otherwise.
MEMORY = DEFAULTS.rank_memory


@dataclass(frozen=True)
class _Found:
    """The findings on one job.

    Attributes:
        failure: why the job failed, if it did.
        results: by rank; empty if a rank has not returned.
        trace: the record of the messages, if the ranks were called.
        moved: bytes that the kernel counted on the network, if it did.
        reusable: whether the ranks can be called again after a failure.
    """

    failure: Failure | None
    results: tuple[RankResult, ...] = ()
    trace: Trace | None = None
    moved: int | None = None
    reusable: bool = False


class ProcessWorld:
    """A world whose ranks are processes.

    The processes are started at once and set up in the background; the first
    :meth:`run` waits for them.

    A job may be for fewer ranks than there are, which costs less than a world of their own: the
    first ranks then form a world in which they load the program anew.  Ranks that wait meanwhile
    have run none of it, as long as jobs do not become smaller.

    A job that fails ends the ranks, unless each of them has returned or raised and nothing that
    they have started is left: then the next job begins with the program loaded anew, too.

    Args:
        launcher: starts the processes.
        size: the number of ranks.
        program: the code of the answer.
        memory: bytes that each rank may allocate.
        subgroups: whether the ranks may make groups, for which they have to connect.
        loading: seconds in which every rank must have joined and loaded the program.
        backend: what carries the messages, see :mod:`grader.launch.backends`.
        wanted: the names that jobs will call, so that only what matters to them is loaded;
            empty for all.
        smaller: other numbers of ranks that jobs may be for.
        collectives: whether jobs may call collectives; without them, all sizes share connections.
        seed: the seed of the random numbers that the program draws, on each rank its own.
        hashing: whether the program may depend on hashes: then the first two ranks have other
            hash seeds than each other and the rest.
        storing: whether the program may put values of its own into the store.
        until: the time on the monotonic clock after which a program has a second to load.
        weighed: whether a job asks for the memory of the ranks.

    Raises:
        RequestError: the backend cannot be used here; the message says the mend.
        WorldError: the processes cannot be started.
    """

    def __init__(
        self,
        launcher: Launcher,
        size: int,
        program: Program,
        memory: int = MEMORY,
        subgroups: bool = True,
        loading: float = SETUP_SECONDS,
        backend: str = "gloo",
        wanted: Collection[str] = (),
        smaller: Collection[int] = (),
        collectives: bool = True,
        seed: int = 0,
        hashing: bool = False,
        storing: bool = True,
        until: float = math.inf,
        weighed: bool = False,
    ) -> None:
        entry, environment = entry_of(backend), launcher.environment
        if environment.sealed and not entry.in_sandbox:
            raise RequestError(f"no world on {entry.title}: a sandbox does not hold it")
        require_backend(backend)
        self.size = size
        self._supervisor: Supervisor | None = None
        self._sizes = {*smaller, size}
        #: the number of ranks that have loaded the program as a world; 0 before they have joined
        self._loaded = 0
        #: whether a job has failed since, so that the program has to be loaded anew
        self._failed = False
        self._loading, self._until = loading, until
        self._launcher = launcher
        self.hashing = hashing and size > 1
        self._handle = launcher.launch(size, OTHER_SEEDS if self.hashing else 0)
        self._job: MpiJob | None = None
        self._store = RankStoreServer(self._tell_all, None if storing else self._addresses)
        self._program = program
        self._wanted = sorted(wanted)
        self._subgroups = subgroups
        environments: list[dict[str, str]] = [{} for _ in range(size)]
        try:
            if entry.job is not None:
                self._job = entry.job(size)
                environments = self._job.environments
            self._supervisor = Supervisor(
                self._handle,
                [FrameChannel(control) for control in self._handle.controls],
                self._send_resolution,
                self._store.take,
                self._inspect,
                self._send_resumption,
                self._store.keys,
            )
        except OSError as error:
            self.close()
            raise WorldError(f"no world of {size} ranks: {shortage(error)}") from error
        except BaseException:
            self.close()
            raise
        self._supervisor.subgroups = self._subgroups
        # tensors on a device are elsewhere, and its driver takes memory as it likes
        self._supervisor.weighed = weighed and entry.devices is None
        for rank in range(size):
            self._tell(
                rank,
                Setup(
                    rank=rank,
                    size=size,
                    smaller=sorted(smaller),
                    path=environment.path,
                    folder=environment.folder,
                    memory=memory,
                    sealed=environment.sealed,
                    subgroups=subgroups,
                    collectives=collectives,
                    backend=backend,
                    environment=environments[rank],
                    seed=seed_for_wire(seed),
                    weighed=self._supervisor.weighed,
                ),
            )

    @property
    def usable(self) -> bool:
        """Whether it can run another job."""
        return not self._handle.closed

    @property
    def pids(self) -> list[int]:
        """The process ids of the ranks."""
        return list(self._handle.pids)

    def run(self, job: Job) -> Outcome:
        """Run a job on as many ranks as it has arguments for."""
        started = time.monotonic()
        assert self._supervisor is not None
        size = len(job.arguments)
        failure = self._get_ready(size)
        found = _Found(failure)
        if failure is None:
            matcher = MessageMatcher(size)
            before = self._launcher.counts()
            self._begin(job)
            try:
                found = self._watch(job, matcher, before)
            except (WorldError, OSError):
                raise
            except Exception as error:
                # the judge computes with what the ranks have reported, which is theirs
                found = _Found(not_understood("a rank", error))
        output = self._supervisor.output()
        # a group is not to be trusted after ranks have given up on a late one, either
        lost = job.killed is not None or job.late is not None
        if lost or (found.failure is not None and not found.reusable):
            self.close()
        self._failed = found.failure is not None
        seconds = time.monotonic() - started
        trace = found.trace or Trace(((),) * size)
        return Outcome(found.results, found.failure, trace, output, seconds, found.moved)

    def _get_ready(self, size: int) -> Failure | None:
        """Wait until all ranks have joined, and the first ``size`` have loaded as a world.

        Return a failure if one has not.
        """
        assert self._supervisor is not None
        if size not in self._sizes:
            raise WorldError(f"{size} argument tuples for {self.size} ranks")
        if not self._loaded:
            failure = self._supervisor.until_joined(self._loading)
            if failure is not None:  # no line of a student's has run yet
                raise WorldError(f"the ranks cannot form a group: {failure.message}")
            # from here on, only ranks that may make subgroups need the store
            self._store.open = self._subgroups
        if self._loaded != size or self._failed:
            self._loaded, self._failed = size, False
            self._tell_all(Load(size, self._program.to_bytes(), self._wanted))
            left = max(self._until - time.monotonic(), 1.0)
            return self._supervisor.until_ready(size, min(self._loading, left))
        return None

    def _begin(self, job: Job) -> None:
        """Send every rank its call."""
        self._store.forget()
        for rank, arguments in enumerate(job.arguments):
            dies = job.killed is not None and job.killed.rank == rank
            delay = job.late.seconds if job.late is not None and job.late.rank == rank else 0.0
            self._tell(
                rank,
                RunCall(
                    entry=job.entry,
                    arguments=pack(arguments),
                    adapter=job.adapter,
                    allowed=None if job.allowed is None else sorted(job.allowed),
                    strict=job.strict,
                    watched=job.watched,
                    answer_limit=job.answer_limit,
                    library=job.library,
                    killed_at=job.killed.step if job.killed is not None and dies else None,
                    follows=job.follows,
                    delay=delay,
                ),
            )

    def _watch(self, job: Job, matcher: MessageMatcher, before: Counts | None) -> _Found:
        """Wait until a job is over, and return what was found."""
        supervisor = self._supervisor
        assert supervisor is not None
        failure = supervisor.until_returned(matcher, job)
        # of several groups, some ranks may have made more than others
        reusable = failure is not None and not self._subgroups and supervisor.reusable
        trace = matcher.trace()
        moved = None
        after = self._launcher.counts() if failure is None else None
        if before is not None and after is not None:
            # what a killed rank had handed to the network may not have left it, and what others
            # have given up on may still come
            if job.killed is None and job.late is None:
                failure = contradiction(trace, after - before)
            moved = (after - before).payload
        results: tuple[RankResult, ...] = ()
        if supervisor.returned:
            try:
                results = tuple(
                    RankResult(None, arguments)
                    if reply is None
                    else _result(reply, len(arguments), job.follows)
                    for reply, arguments in zip(supervisor.replies(), job.arguments, strict=True)
                )
            except BrokenFrame as error:
                failure = Failure(Diagnosis.TAMPERING, f"an answer was forged: {error}")
                reusable = False
            except MemoryError as error:
                raise WorldError("there is no memory here for what the ranks return") from error
        return _Found(failure, results, trace, moved, reusable)

    def _tell_all(self, message: msgspec.Struct) -> None:
        """Send a message to every rank of the world that the ranks are now."""
        for rank in range(self._loaded or self.size):
            self._tell(rank, message)

    def _tell(self, rank: int, message: msgspec.Struct) -> None:
        assert self._supervisor is not None
        self._supervisor.tell(rank, message)

    def _addresses(self, rank: int) -> int:
        """Return the bytes that the addresses of a rank's groups may take in the store."""
        assert self._supervisor is not None
        begun = self._supervisor.matcher.operations[rank]
        return (_ADDRESS + _PEER * self.size) * sum(op.kind == "new_group" for op in begun)

    def _send_resolution(self, rank: int, op: int, source: int) -> None:
        self._tell(rank, Resolved(op, source))

    def _inspect(self, rank: int) -> None:
        self._tell(rank, Inspect())

    def _send_resumption(self, rank: int, value: bytes) -> None:
        self._tell(rank, Resumed(value))

    def close(self) -> None:
        """Kill every rank; :meth:`Launcher.settle` waits until they are gone."""
        if self._supervisor is not None:
            self._supervisor.close()
        self._handle.close()
        if self._job is not None:
            self._job.close()
            self._job = None

    def __enter__(self) -> ProcessWorld:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill every rank, and wait until it is gone."""
        self.close()
        self._launcher.settle()


def _result(reply: Returned, arguments: int, follows: bool) -> RankResult:
    """Return a rank's answer as a result.

    Raises:
        BrokenFrame: the answer was forged.
        MemoryError: the judge has no memory for it.
    """
    after = unpack(reply.arguments)
    if not isinstance(after, tuple) or len(after) != arguments:
        raise BrokenFrame(f"it has not {arguments} arguments")
    places = set(map(str, range(arguments)))
    if not places.issuperset([*reply.aliases, *reply.replaced]):
        raise BrokenFrame("it shares or has replaced arguments that are not there")
    aliases = tuple(map(int, reply.aliases))
    replaced = tuple(map(int, reply.replaced))
    changes: tuple[ArgumentChange, ...] = ()
    unseen: tuple[str, ...] = ()
    if follows:
        changes = tuple(
            ArgumentChange(name, unpack(before), unpack(now)) for name, before, now in reply.changes
        )
        unseen = tuple(reply.unseen)
    value, drew = unpack(reply.value), reply.drew
    return RankResult(
        value, after, aliases, reply.time, replaced, reply.omitted, drew, changes, unseen
    )


# The largest world. ---------------------------------------------------------------

_GREETING = b"""
import torch.distributed as dist

def greet(x):
    dist.all_reduce(x)
    return x
"""

#: Whether ranks can share a device, by backend and number of devices, once it was tried.
_shared: dict[tuple[str, int], bool] = {}


def largest_world(launcher: Launcher, backend: str) -> int | None:
    """Return the largest number of ranks that a backend takes here, or None for any number.

    A backend whose ranks need devices is tried with one rank more than there are devices:
    whether ranks can share one depends on the version of NCCL and on the devices.
    """
    devices = entry_of(backend).devices
    if devices is None:
        return None
    import torch

    count = devices()
    if (backend, count) not in _shared:
        program = Submission.from_bytes(_GREETING, "greeting.py").program
        # an argument is put on the rank's device
        each = ((torch.ones(1),),) * (count + 1)
        job = Job("greet", each, allowed=None, seconds=SETUP_SECONDS)
        try:
            with ProcessWorld(launcher, count + 1, program, backend=backend) as world:
                _shared[backend, count] = world.run(job).failure is None
        except WorldError:
            _shared[backend, count] = False
    return None if _shared[backend, count] else count
