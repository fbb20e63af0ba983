"""A world of processes: one per rank, watched over sockets."""

from __future__ import annotations

import time

import msgspec

from grader.core.codec import pack, unpack
from grader.core.errors import WorldError, shortage
from grader.core.framing import BrokenFrame, FrameWriter
from grader.core.program import Program
from grader.core.resource_limits import DEFAULTS
from grader.core.verdict import Diagnosis, Failure
from grader.core.wire import Inspect, Load, Resolved, Returned, RunCall, Setup
from grader.launch.event_validation import NAME
from grader.launch.kernel_counters import contradiction
from grader.launch.process_group_handle import Launcher
from grader.launch.supervisor import Supervisor
from grader.launch.world import Job, Outcome, RankResult
from grader.rank.rank_store import RankStoreServer
from grader.trace.message_matcher import MessageMatcher

__all__ = ["SETUP_SECONDS", "ProcessWorld"]

#: Seconds in which a rank must have joined its group and loaded the program.
SETUP_SECONDS = DEFAULTS.setup

#: Bytes that a rank may allocate, unless told otherwise.
MEMORY = DEFAULTS.rank_memory


class ProcessWorld:
    """Ranks as processes.

    The processes are started at once and set up in the background; the first
    :meth:`run` waits for them.

    Args:
        launcher: what starts the processes.
        size: how many ranks.
        program: the code of the answer.
        memory: bytes that each rank may allocate.
        subgroups: whether the ranks may make groups, for which they have to connect.
        loading: seconds in which every rank must have joined and loaded the program.

    Raises:
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
    ) -> None:
        self.size = size
        self._watch: Supervisor | None = None
        self._setup_failure: Failure | None = None
        self._is_set_up = False
        self._loading = loading
        self._launcher = launcher
        self._handle = launcher.launch(size)
        self._deaf: set[int] = set()
        self._writers = [FrameWriter(control) for control in self._handle.controls]
        self._meeting = RankStoreServer(self._tell_all)
        self._program = program
        self._subgroups = subgroups
        try:
            self._watch = Supervisor(
                self._handle, self._send_resolution, self._meeting.take, self._load, self._inspect
            )
        except OSError as error:
            self._handle.close()
            raise WorldError(f"no world of {size} ranks: {shortage(error)}") from error
        self._watch.subgroups = self._subgroups
        setting = launcher.setting
        for rank in range(size):
            self._tell(
                rank,
                Setup(
                    rank=rank,
                    size=size,
                    path=setting.path,
                    folder=setting.folder,
                    memory=memory,
                    sealed=setting.sealed,
                    subgroups=subgroups,
                    backend=setting.backend,
                    surroundings=self._handle.surroundings[rank]
                    if self._handle.surroundings
                    else {},
                ),
            )

    @property
    def usable(self) -> bool:
        """Whether it can run another job."""
        return not self._handle.closed

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks."""
        return list(self._handle.pids)

    def run(self, job: Job) -> Outcome:
        """Run a job on every rank."""
        started = time.monotonic()
        failure = self._finish_setup()
        matcher = MessageMatcher(self.size)
        before = self._launcher.counts()
        if failure is None:
            failure = self._call(job, matcher)
        after = self._launcher.counts() if failure is None else None
        moved = None
        if before is not None and after is not None:
            failure = contradiction(matcher.trace(), after - before)
            moved = (after - before).payload
        assert self._watch is not None
        results: tuple[RankResult, ...] = ()
        if self._watch.returned:
            try:
                results = tuple(
                    _result(reply, len(arguments))
                    for reply, arguments in zip(self._watch.replies(), job.arguments, strict=True)
                )
            except BrokenFrame as error:
                failure = Failure(Diagnosis.TAMPERING, f"an answer was forged: {error}")
            except MemoryError as error:
                raise WorldError("there is no memory here for what the ranks return") from error
        output = self._watch.output()
        if failure is not None:
            self.close()
        seconds = time.monotonic() - started
        return Outcome(results, failure, matcher.trace(), output, seconds, moved)

    def _finish_setup(self) -> Failure | None:
        """Wait until every rank has joined and loaded; why not, if not."""
        assert self._watch is not None
        if not self._is_set_up:
            self._setup_failure = self._watch.until_ready(self._loading)
            self._is_set_up = True
        return self._setup_failure

    def _call(self, job: Job, matcher: MessageMatcher) -> Failure | None:
        assert self._watch is not None
        if len(job.arguments) != self.size:
            raise WorldError(f"{len(job.arguments)} argument tuples for {self.size} ranks")
        for rank, arguments in enumerate(job.arguments):
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
                ),
            )
        return self._watch.until_returned(matcher, job)

    def _load(self) -> None:
        """Everybody has joined: now the stranger's code may run."""
        # only those who may make subgroups have need of the store from here on
        self._meeting.open = self._subgroups
        self._tell_all(Load(self._program.to_bytes()))

    def _tell_all(self, message: msgspec.Struct) -> None:
        for rank in range(self.size):
            self._tell(rank, message)

    def _tell(self, rank: int, message: msgspec.Struct) -> None:
        # a rank that has died does not hear, and one that does not listen is not
        # waited for twice; the watch sees both and says why
        if rank in self._deaf:
            return
        try:
            self._writers[rank].write(message)
        except OSError:
            self._deaf.add(rank)

    def _send_resolution(self, rank: int, op: int, source: int) -> None:
        self._tell(rank, Resolved(op, source))

    def _inspect(self, rank: int) -> None:
        self._tell(rank, Inspect())

    def close(self) -> None:
        """Kill every rank; the launcher reaps them, see :meth:`Launcher.settle`."""
        if self._watch is not None:
            self._watch.close()
        self._handle.close()

    def __enter__(self) -> ProcessWorld:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill every rank, and wait until it is gone."""
        self.close()
        self._launcher.settle()


def _result(reply: Returned, arguments: int) -> RankResult:
    """An answer as data.

    Raises:
        BrokenFrame: it was forged.
        MemoryError: there is no memory for it here.
    """
    after = unpack(reply.arguments)
    if not isinstance(after, tuple) or len(after) != arguments:
        raise BrokenFrame(f"it has not {arguments} arguments")
    places = set(map(str, range(arguments)))
    if not places.issuperset([*reply.aliases, *reply.replaced]):
        raise BrokenFrame(
            f"it shares {reply.aliases[:8]} or has replaced {reply.replaced[:8]} of its arguments"
        )
    aliases = tuple(map(int, reply.aliases))
    replaced = tuple(map(int, reply.replaced))
    omitted = reply.omitted[:NAME]
    return RankResult(unpack(reply.value), after, aliases, reply.time, replaced, omitted)
