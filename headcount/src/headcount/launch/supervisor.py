"""The supervision of a call: it reads from the ranks until they have all ended, or can never end.

What lives as long as the ranks is :class:`Supervisor`; what belongs to one call, from its first
event to its verdict, is a :class:`CallSupervision`, which is made for it.  That the ranks join, and
load a program, is supervised as a call is.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from headcount.core.codec import STRUCTURE, pack
from headcount.core.errors import WorldError
from headcount.core.events import WORLD, Event, Inspected, Paused
from headcount.core.verdict import Diagnosis, Failure, Site, ranks_text
from headcount.core.wire import (
    REPORTS,
    BrokenFrame,
    DumpStacks,
    Inspect,
    Joined,
    Put,
    Raised,
    Ready,
    Refused,
    Resolved,
    Resumed,
    Returned,
    StepCount,
    StoreLookup,
)
from headcount.launch.channels import OutputForwarder, Printed, RankChannels
from headcount.launch.event_validation import EventValidator
from headcount.launch.frame_channel import FrameChannel
from headcount.launch.launchers import ProcessGroupHandle
from headcount.launch.root_cause import RootCause
from headcount.launch.watchdog import CpuWatchdog, memory_of
from headcount.launch.world import Job, Pause
from headcount.rank.rank_store import RankStoreServer
from headcount.trace.deadlock import deadlock, quiescent, stuck, waiting
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.trace import PauseSpan

__all__ = ["DUMP_PATIENCE", "CallSupervision", "Supervisor"]

#: Seconds that the other ranks have to end or to wait once something is wrong, so that the cause
#: is named and not the failure that was reported first.
GRACE = 1.0

#: Seconds that ranks which hang have to dump the line where they are.
DUMP_PATIENCE = 0.5

#: Callers of a line that are named, the innermost ones.
_CALLERS = 3

#: Seconds between two questions to a rank about its threads: while it seems stuck, and some of
#: its threads may still act; and after which a rank that seems to compute is first asked.
ASK, SILENCE = 0.02, 0.1

#: Seconds without a report after which it is shown where the ranks of a script are, and then after
#: twice as many; between two looks at whether to show it; and that ranks have for their last words.
QUIET, _LOOKS, LAST_WORDS = 30.0, 0.5, 5.0

#: Least seconds between two searches for ranks that seem stuck; not every message starts one.
PAUSE = 0.005

#: Largest size in bytes of a frame before the call.
LONGEST_BEFORE = 1 << 20

#: A job that stands for the time before the first call: ranks join, and load the program.
_STARTING = Job("", (), allowed=None, output_limit=1 << 20)

#: The same for ranks that are weighed before they run a line of it.
_STARTING_WEIGHED = replace(_STARTING, pauses=(Pause(weighs=True),))


class Supervisor:
    """What is known of the ranks of a world for as long as they live.

    Args:
        handle: the processes of the world.
        controls: their sockets, in rank order.
        store: the store through which they connect.
        subgroups: whether they may make groups.
        weighed: whether they are weighed before they run a line of the program.

    Attributes:
        channels: all that they write.
        store: the store through which they connect.
        subgroups: whether they may make groups.
        joined: the ranks that have joined the world.
        ready: the ranks that have loaded the program.
        weights: by rank, the bytes of its process before it ran a line of the program.
        views: by rank, the groups that it has reported, with their members.
        call: the call that is supervised, or was last.
    """

    def __init__(
        self,
        handle: ProcessGroupHandle,
        controls: Sequence[FrameChannel],
        store: RankStoreServer,
        subgroups: bool = True,
        weighed: bool = False,
    ) -> None:
        self.channels = RankChannels(handle, controls)
        self.store = store
        self.subgroups = subgroups
        self.joined: set[int] = set()
        self.ready: set[int] = set()
        self.weights: dict[int, int] = {}
        self.views: list[dict[str, list[int]]] = [{} for _ in controls]
        self._starting = _STARTING_WEIGHED if weighed else _STARTING
        self.call = CallSupervision(self, _STARTING, MessageMatcher(len(controls)), LONGEST_BEFORE)

    def until_joined(self, seconds: float) -> Failure | None:
        """Wait until every rank has joined, and return a failure if one has not."""
        size = self.channels.size
        return self.call.wait_until(lambda: len(self.joined) == size, seconds)

    def until_ready(self, size: int, seconds: float) -> Failure | None:
        """Wait until the first ``size`` ranks have loaded; return a failure if one has not.

        From now on, only these ranks are listened to, and the groups that there were are forgotten.
        """
        self.channels.listen_to(size)
        self.ready.clear()
        self.views = [{} for _ in range(size)]
        self.call = CallSupervision(self, self._starting, MessageMatcher(size), LONGEST_BEFORE)
        return self.call.wait_until(lambda: len(self.ready) == size, seconds)

    def begin(self, job: Job) -> CallSupervision:
        """Return the supervision of a job that the ranks are about to be asked for."""
        late = [one.rank for one in job.late]
        before = self.call.matcher
        matcher = MessageMatcher(
            self.channels.size, self.store.keys, late, before, follower=job.follower
        )
        self.call = CallSupervision(self, job, matcher, 4 * job.answer_limit + STRUCTURE)
        return self.call

    def close(self) -> None:
        """Stop reading from all ranks."""
        self.channels.close()


@dataclass
class _PauseOfAll:
    """A pause to which ranks come, and which they leave together.

    Attributes:
        came: when each rank has said that it pauses.
        what: what the judge does in it; known once all have come.
        ends: when it is over, on the monotonic clock.
    """

    came: dict[int, int]
    what: Pause | None = None
    ends: float = math.inf


@dataclass
class _Wait:
    """What limits a wait for the ranks.

    Attributes:
        seconds: how long it may take.
        deadline: when it is over, on the monotonic clock.
        grace: until when the other ranks may still show a deeper cause, once something is wrong.
    """

    seconds: float
    deadline: float
    grace: float = math.inf


class CallSupervision:
    """The supervision of one call of the ranks.

    Args:
        supervisor: knows the ranks.
        job: what they do.
        matcher: takes the events of this call.
        longest: bytes of their largest frame.
    """

    def __init__(
        self, supervisor: Supervisor, job: Job, matcher: MessageMatcher, longest: int
    ) -> None:
        self.matcher = matcher
        self._supervisor = supervisor
        self._channels = channels = supervisor.channels
        free = job.follower is not None  # a person's own script
        self._size = channels.size
        # a record of what tensors hold is longer, and of one case
        each = REPORTS // (1 if job.watched else channels.size)
        channels.limit(longest, None if free else each)
        self._job = job
        self._validator = EventValidator(
            matcher,
            job.allowed,
            supervisor.subgroups,
            bool(job.watched),
            supervisor.views,
            pauses=bool(job.pauses),
            limited=job.follower is None,
            replicas=job.replicas,
        )
        self._causes = RootCause(matcher)
        self._pauses = iter(job.pauses)
        self._pause = _PauseOfAll({})
        self._steps = StepCount(job.killed.step) if job.killed is not None else None
        self._replies: dict[int, Returned] = {}
        #: bytes that all ranks together may still return
        self._room = 32 * job.answer_limit + STRUCTURE
        #: the ranks of a script that have ended their process with status 0
        self._left: set[int] = set()
        self._output = (
            Printed(self._size, job.output_limit)
            if job.follower is None
            else OutputForwarder(self._size, job.follower.printed)
        )
        self._watchdog = CpuWatchdog(channels.handle.processes, job.effort)
        now = time.monotonic()
        #: ranks that have been asked what their threads do, and have not yet answered
        self._asked: set[int] = set()
        #: when each rank last reported something by itself, and when it last answered
        self._reported = [now] * self._size
        self._answered = [-math.inf] * self._size
        self._ask_again = now
        #: seconds without a report after which it is shown where the ranks are
        self._quiet, self._look_again = QUIET, now

    # What has come of it. ----------------------------------------------------

    @property
    def returned(self) -> bool:
        """Whether every rank has returned, except for one that was killed and is gone.

        A rank of a script may also end its process, as long as its status is 0.
        """
        gone = self.matcher.killed & self._channels.gone
        return len(self._replies.keys() | gone | self._left) == self._size

    def replies(self) -> list[Returned | None]:
        """Return the ranks' answers, in rank order; None for one that has not returned."""
        return [self._replies.get(rank) for rank in range(self._size)]

    def output(self) -> tuple[str, ...]:
        """Return the output of each rank."""
        return self._output.texts()

    def _interrupt(self) -> None:
        """Interrupt the ranks as Ctrl-C does, and read for a while what they do then."""
        self._channels.handle.signal(signal.SIGINT)
        until = time.monotonic() + LAST_WORDS
        while len(self.matcher.ended) < self._size and (left := until - time.monotonic()) > 0:
            self._channels.read(left, self)
        self._channels.drain(self)

    @property
    def reusable(self) -> bool:
        """Whether the ranks can be called again after a job that may have failed."""
        gone = any(rank < self._size for rank in self._channels.handle.statuses)
        return self._causes.is_recoverable() and self.matcher.idle() and not gone

    # Waiting. ----------------------------------------------------------------

    def wait_until_returned(self) -> Failure | None:
        """Wait until the call is over, and return why it failed, if it did."""
        try:
            failure = self.wait_until(lambda: self.returned, self._job.seconds)
        except KeyboardInterrupt as stop:
            if self._job.follower is None:
                raise
            self._job.follower.stopped(next(iter(stop.args), signal.SIGINT))
            failure = self._whereabouts()
            self._interrupt()
        if failure is not None and self.matcher.is_script and failure.diagnosis.between_ranks:
            failure = self._with_context(failure)
        self._channels.drain(self)
        self.matcher.close(time.monotonic_ns())
        failure = failure or self._causes.first()
        left = None if failure else self._causes.leftover()
        if left is not None and self._job.follower is not None:
            # the script has come to its end, and so may be right
            self._job.follower.leftover(left)
            return None
        return failure or left

    def wait_until(self, finished: Callable[[], bool], seconds: float) -> Failure | None:
        """Wait until something is finished, and return why it never will, if so."""
        wait = _Wait(seconds, time.monotonic() + seconds)
        while not finished():
            now = time.monotonic()
            failure = self._failure(wait, now)
            if failure is not None:
                return failure
            due = min(
                wait.deadline,
                wait.grace,
                self._watchdog.due,
                self._inspect_threads(),
                self._pause.ends,
                self._look(now),
            )
            self._channels.read(due - now, self)
            self._end_pause()
            self._match_wildcards()
        return None

    def _failure(self, wait: _Wait, now: float) -> Failure | None:
        """Return why the call fails, once no rank can change that or its time is up."""
        if wait.grace == math.inf and self._something_wrong():
            wait.grace = now + GRACE
        soonest = min(wait.grace, wait.deadline)
        over = wait.grace < math.inf and (self._all_over() or now >= soonest)
        if not over and (after := self._exceeded(wait, now)):
            self._causes.timed_out(self._whereabouts(), after)
            over = True
        if not over:
            return None
        wait.grace = math.inf  # what is still unread may show that nothing is wrong
        self._channels.drain(self)
        self._channels.lose_hung_up(self)
        return self._causes.first() or deadlock(self.matcher, certain=True)

    def _exceeded(self, wait: _Wait, now: float) -> str:
        """Return the limit that the ranks have exceeded, or an empty string."""
        if now >= wait.deadline:
            return f"{wait.seconds:g} s"
        return self._watchdog.look(self.matcher) if now >= self._watchdog.due else ""

    def _look(self, now: float) -> float:
        """Show where the ranks of a script are if that is asked for, or nothing happens for long.

        Return when to see again whether it is.
        """
        follower = self._job.follower
        if follower is None:
            return math.inf
        if now < self._look_again:
            return self._look_again
        self._look_again, silent = now + _LOOKS, now - max(self._reported)
        if silent < QUIET:
            self._quiet = QUIET
        long = silent >= self._quiet
        if long:
            self._quiet = 2 * silent
        if follower.asks() or (long and waiting(self.matcher)):
            # healthy ranks may be among them, which no signal must stop in the middle of a stack
            where = self._whereabouts(gently=True)
            if where is not None:
                follower.shows(where, silent)
        return self._look_again

    def _something_wrong(self) -> bool:
        return bool(self._causes.first()) or bool(stuck(self.matcher, certain=True))

    def _all_over(self) -> bool:
        """Return whether every rank has ended or can never go on."""
        over = self.matcher.ended | set(stuck(self.matcher, certain=True))
        return len(over) == self._size or self._causes.urgent

    def _inspect_threads(self) -> float:
        """Ask ranks what their threads do, where it matters; return when to do so again."""
        now, due = time.monotonic(), math.inf
        if not self._job.entry:
            return due
        if now < self._ask_again:
            return self._ask_again
        self._ask_again = now + PAUSE
        matcher = self.matcher
        suspects = set(stuck(matcher))
        for rank in range(self._size):
            if rank in matcher.ended or rank in self._asked:
                continue
            seen = matcher.inspected[rank]
            if seen is not None and not seen.acting:
                continue
            # a rank that waits for no operation may wait for its own threads, but mostly it
            # computes; the longer nothing happens, the less often it is asked
            reported, pause = self._reported[rank], (now - self._reported[rank]) / 8
            if rank in suspects:
                moment = self._answered[rank] + max(ASK, pause)
            else:
                moment = max(reported, self._answered[rank]) + max(SILENCE, pause)
            if now < moment:
                due = min(due, moment)
                continue
            self._asked.add(rank)
            self._channels.send(rank, Inspect())
        return due

    def _end_pause(self) -> None:
        """Let the ranks that have paused go on, once all have come and the pause is over."""
        pause = self._pause
        if not pause.came or len(pause.came.keys() | self.matcher.ended) < self._size:
            return
        if pause.what is None:
            pause.what = next(self._pauses, Pause())
            pause.ends = time.monotonic() + pause.what.seconds
        if time.monotonic() < pause.ends:
            return
        what, came, self._pause = pause.what, pause.came, _PauseOfAll({})
        now = memory_of(self._channels.handle.processes()) if what.weighs else {}
        weights = self._supervisor.weights
        if not self._job.entry:
            # a rank that has run the program before, in a smaller world, was weighed then
            weights |= {r: now[r] for r in came if r in now and r not in weights}
        value = b"" if what.tells is None else pack(what.tells())
        for rank, began in came.items():
            weight = weights.get(rank)
            grown = None if weight is None or rank not in now else now[rank] - weight
            self.matcher.pause(rank, PauseSpan(began, time.monotonic_ns(), grown))
            self._channels.send(rank, Resumed(value))

    def _match_wildcards(self) -> None:
        """Choose messages for wildcard receives, when nothing else can happen any more."""
        # one by one: a choice may let a rank go on, which may send another message that the next
        # receive could get; if no rank goes on, no event would come that makes the next choice
        while self._match_one():
            pass
        for resolution in self.matcher.take_resolutions():
            self._channels.send(resolution.rank, Resolved(resolution.op, resolution.source))

    def _match_one(self) -> bool:
        """Choose a message for one wildcard receive; return whether one was chosen."""
        matcher = self.matcher
        if not matcher.ready or not quiescent(matcher):
            return False
        ready = ((receive, matcher.candidates(receive)) for receive in matcher.ready)
        matcher.resolve(*self._job.policy.choose(ready))
        return True

    # What the channels bring. ------------------------------------------------

    def received(self, rank: int, messages: Iterable[object]) -> bool:
        """Take messages of a rank's; return whether to go on listening to it."""
        try:
            for message in messages:
                self._take(rank, message)
        except Refused as error:
            self._causes.refused(rank, error.diagnosis, str(error))
        except BrokenFrame as error:
            self._causes.forged(rank, str(error))
        except WorldError:
            raise
        except Exception as error:
            # what comes from a rank is data; that the judge makes no sense of it ends this world
            # only, with a word of its own
            self._causes.not_understood(rank, error)
        else:
            return True
        return False

    def printed(self, rank: int, data: bytes) -> bool:
        """Take what a rank has printed; return whether to go on reading that."""
        if self._output.add(rank, data):
            self._causes.flooded(rank, self._output.limit)
            return False
        return True

    def on_activity(self) -> None:
        """Take note that a rank has written something."""
        self._watchdog.note_activity()

    def lost(self, rank: int) -> None:
        """Take note that the process of a rank is gone; all that it wrote has been taken."""
        if rank in self.matcher.killed:
            self.matcher.end(rank, time.monotonic_ns())
        elif rank not in self.matcher.ended or rank in self._replies:
            self._replies.pop(rank, None)
            self.matcher.end(rank, time.monotonic_ns())
            status, printed = self._channels.handle.statuses.get(rank), self._output.by(rank)
            if status == 0 and self.matcher.is_script:
                # some scripts leave so by `os._exit`, not to hang while libraries are taken down
                self._left.add(rank)
                return
            self._causes.ended(rank, status, self._channels.dumped_site(rank), printed)

    def _take(self, rank: int, message: object) -> None:
        if type(message) is Inspected:
            self._validator.validate(rank, message)
            self.matcher.take(rank, message)
            self._asked.discard(rank)
            self._answered[rank] = time.monotonic()
            return
        self._reported[rank] = time.monotonic()
        self._watchdog.note_activity()
        if self._steps is not None:
            self._kill_if_due(rank, message)
        if isinstance(message, Event):
            self._validator.validate(rank, message)
            self.matcher.take(rank, message)
            if type(message) is Paused:
                self._pause.came[rank] = time.monotonic_ns()
        elif isinstance(message, Put):
            self._supervisor.store.take(rank, message)
        elif isinstance(message, StoreLookup):
            self._supervisor.store.look(rank, message)
        elif isinstance(message, Joined):
            if rank in self._supervisor.joined:
                raise BrokenFrame("a second report that it has joined")
            self._supervisor.joined.add(rank)
        elif rank in self.matcher.ended:
            self._causes.forged(rank, "a second answer")
        elif isinstance(message, Returned) and not self._job.entry:
            self._causes.forged(rank, "an answer before it was called")
        elif isinstance(message, Returned) and rank in self.matcher.killed:
            self._causes.forged(rank, "an answer after the step at which it is killed")
        elif isinstance(message, Returned):
            self._room -= message.nbytes
            if self._room < 0:
                raise Refused("returns too much beside what the others do", Diagnosis.OUTPUT_LIMIT)
            self._replies[rank] = message
            self.matcher.end(rank)
        elif isinstance(message, Raised):
            if message.stage == "join":
                self._cannot_join(rank, message)
            self.matcher.end(rank)
            self._causes.raised(rank, message)
        elif isinstance(message, Ready):
            self._supervisor.ready.add(rank)
        else:
            raise BrokenFrame("an answer for which there was no request")

    def _kill_if_due(self, rank: int, message: object) -> None:
        """Kill the rank that the job names, once it has come to the step at which it dies."""
        killed = self._job.killed
        if killed is None or self._steps is None or rank != killed.rank:
            return
        if self._steps.reached(message) and rank not in self.matcher.killed:
            self.matcher.kill(rank)
            self._channels.handle.signal(signal.SIGKILL, rank)

    def _cannot_join(self, rank: int, message: Raised) -> NoReturn:
        if rank in self._supervisor.joined:
            raise BrokenFrame("a report that it cannot join, after it has joined")
        raise WorldError(f"rank {rank} cannot join: {message.kind}: {message.message}")

    def _whereabouts(self, gently: bool = False) -> Failure | None:
        """Return where the ranks are, with the lines of those that still run."""
        still = waiting(self.matcher) | self.matcher.ended
        running = [rank for rank in range(self._size) if rank not in still]
        self._channels.forget_dumps()
        self._dump(running, gently)
        sites = {rank: self._channels.dumped_site(rank) for rank in running}
        return self._causes.whereabouts(running, sites)

    def _dump(self, ranks: Collection[int], gently: bool = False) -> None:
        """Let ranks dump where they are, and wait for it; gently, without a signal."""
        for rank in ranks:
            self._channels.send(rank, DumpStacks())
        self._read_until(lambda: all(map(self._channels.has_dumped_all, ranks)))
        # the signal stops a thread anywhere, and a walk over a stack that is being built can crash
        # the rank; so it is for those alone whose code in C lets no other thread of Python run
        silent = [rank for rank in ranks if not self._channels.has_dumped(rank)]
        if silent and not gently and hasattr(signal, "SIGUSR1"):
            for rank in silent:
                self._channels.handle.signal(signal.SIGUSR1, rank)
            # nothing says where such a dump ends; the line where the rank is comes first
            self._read_until(lambda: all(map(self._channels.dumped_site, silent)))

    def _read_until(self, dumped: Callable[[], bool]) -> None:
        """Read what ranks dump until it is here, for a while."""
        until = time.monotonic() + DUMP_PATIENCE
        while time.monotonic() < until and not dumped():
            self._channels.read(until - time.monotonic(), self)

    def _with_context(self, failure: Failure) -> Failure:
        """Return a failure with what shows where ranks are: callers, groups, exceptions in hand.

        A script often has a function of its own around each call, which is right everywhere but
        where it is called; and on a mesh, a call of a line is one of a row or of a column.
        """
        sites = {wait.rank: wait.site for wait in failure.waits}
        living = [rank for rank in range(self._size) if rank not in self.matcher.ended]
        self._dump([rank for rank in living if not self._channels.has_dumped(rank)])
        chains: dict[tuple[Site, ...], list[int]] = {}
        for rank in living:
            site = sites.get(rank) if sites else self._channels.dumped_site(rank)
            callers = () if site is None else self._channels.dumped_callers(rank, site)[:_CALLERS]
            if site is not None and callers:
                chains.setdefault((site, *callers), []).append(rank)
        found = tuple(
            f"{ranks_text(ranks)}: {site} is called from"
            f" {', which is called from '.join(map(str, callers))}"
            for (site, *callers), ranks in chains.items()
        )
        found += tuple(self._groups_of_waits())
        found += tuple(
            f"rank {rank} makes its call while handling {one.error}"
            + f", raised at {Site(one.file, one.line)}" * bool(one.line)
            for rank, one in sorted(self.matcher.handling.items())
            if rank not in self.matcher.ended
        )
        return replace(failure, detail=(*failure.detail, *found))

    def _groups_of_waits(self) -> Iterator[str]:
        """Yield in which groups ranks wait, other than the default group.

        Those that a script calls by one name, as a device mesh does, are told together.
        """
        matcher = self.matcher
        inside: dict[tuple[str, str], dict[str, set[int]]] = {}
        for rank in set(range(self._size)) - matcher.ended:
            for held in matcher.waits[rank].values():
                name = held.op.group
                if name != WORLD and not held.op.makes_group:
                    called = matcher.groups[name].description
                    groups = inside.setdefault((held.op.kind, called or name), {})
                    groups.setdefault(name, set()).add(rank)
        for (kind, _), groups in sorted(inside.items()):
            name = next(iter(groups))
            group = matcher.groups[name]
            which = f"group {group.description}".strip() + f" of {ranks_text(group.members)}"
            if len(groups) > 1:
                which = f"groups {group.description}, each in its own"
            yield f"{ranks_text(set().union(*groups.values()))}: this {kind} is in the {which}"
