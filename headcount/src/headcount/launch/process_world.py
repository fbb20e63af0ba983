"""A world of processes, one per rank."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

import msgspec

from headcount.core.codec import pack, unpack
from headcount.core.errors import RequestError, WorldError, shortage
from headcount.core.program import Program
from headcount.core.random_numbers import rank_seed
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Diagnosis, Failure
from headcount.core.wire import BrokenFrame, Load, Returned, RunCall, Setup
from headcount.launch.backends import BackendJob, entry_of, require_backend
from headcount.launch.frame_channel import FrameChannel
from headcount.launch.launchers import Launcher, TrafficCounts
from headcount.launch.root_cause import not_understood
from headcount.launch.supervisor import CallSupervision, Supervisor
from headcount.launch.world import ArgumentChange, Job, Outcome, RankResult
from headcount.rank.rank_store import RankStoreServer
from headcount.trace.trace import Trace

__all__ = ["SETUP_SECONDS", "ProcessWorld", "largest_world"]


#: Seconds in which a rank must have joined its group and loaded the program.
SETUP_SECONDS = DEFAULTS.setup

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
        backend: what carries the messages, see :mod:`headcount.launch.backends`.
        wanted: the names that jobs will call, so that only what matters to them is loaded;
            empty for all.
        smaller: other numbers of ranks that jobs may be for.
        collectives: whether jobs may call collectives; without them, all sizes share connections.
        seed: the seed of the random numbers that the program draws, on each rank its own.
        set_orders: whether each rank takes sets in an order of its own.
        storing: whether the program may put values of its own into the store.
        until: the time on the monotonic clock after which a program has a second to load.
        weighed: whether a job asks for the memory of the ranks.
        script: whether the program is a person's own script, see
            :class:`headcount.core.wire.Setup`.

    Attributes:
        handle: the processes.

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
        set_orders: bool = False,
        storing: bool = True,
        until: float = math.inf,
        weighed: bool = False,
        script: bool = False,
    ) -> None:
        entry, environment = entry_of(backend), launcher.environment
        if environment.sealed and not entry.in_sandbox:
            raise RequestError(f"no world on {entry.title}: a sandbox does not hold it")
        require_backend(backend)
        self.size = size
        self._connects_by_store = entry.devices is None
        self._supervisor: Supervisor | None = None
        self._sizes = {*smaller, size}
        #: the number of ranks that have loaded the program as a world; 0 before they have joined
        self._loaded = 0
        #: whether a job has failed since, so that the program has to be loaded anew
        self._failed = False
        self._loading, self._until = loading, until
        self._launcher = launcher
        self.handle = launcher.launch(size)
        self._job: BackendJob | None = None
        self._store = RankStoreServer(
            self._tell_all, self._tell, None if storing else self._addresses, limited=not script
        )
        self._program = program
        self._wanted = sorted(wanted)
        self._subgroups = subgroups
        environments: list[dict[str, str]] = [{} for _ in range(size)]
        try:
            if entry.job is not None:
                self._job = entry.job(size)
                environments = self._job.environments
            self._supervisor = Supervisor(
                self.handle,
                [FrameChannel(control) for control in self.handle.controls],
                self._store,
                subgroups,
                # tensors on a device are elsewhere, and its driver takes memory as it likes
                weighed and entry.devices is None,
            )
        except OSError as error:
            self.close()
            raise WorldError(f"no world of {size} ranks: {shortage(error)}") from error
        except BaseException:
            self.close()
            raise
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
                    transport=entry.transport,
                    environment=environments[rank],
                    seed=rank_seed(seed, rank),
                    weighed=weighed and entry.devices is None,
                    script=script,
                    set_orders=set_orders,
                ),
            )

    @property
    def usable(self) -> bool:
        """Whether it can run another job."""
        return not self.handle.closed

    @property
    def pids(self) -> list[int]:
        """The process ids of the ranks."""
        return list(self.handle.pids)

    def run(self, job: Job) -> Outcome:
        """Run a job on as many ranks as it has arguments for."""
        started = time.monotonic()
        assert self._supervisor is not None
        size = len(job.arguments)
        failure = self._join_and_load(size)
        found = _Found(failure)
        if failure is None:
            call = self._supervisor.begin(job)
            before = self._launcher.counts()
            self._ask(job)
            try:
                found = self._watch(job, call, before)
            except (WorldError, OSError):
                raise
            except Exception as error:
                # the judge computes with what the ranks have reported, which is theirs
                found = _Found(not_understood("a rank", error))
        output = self._supervisor.call.output()
        reported = self._supervisor.channels.reported
        # a group is not to be trusted after ranks have given up on a late one, either
        lost = job.killed is not None or bool(job.late)
        if lost or (found.failure is not None and not found.reusable):
            self.close()
        self._failed = found.failure is not None
        seconds = time.monotonic() - started
        trace = found.trace or Trace(((),) * size)
        replicas = self._supervisor.call.matcher.replicas if job.replicas else None
        return Outcome(
            found.results, found.failure, trace, output, seconds, found.moved, reported, replicas
        )

    def _join_and_load(self, size: int) -> Failure | None:
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

    def _ask(self, job: Job) -> None:
        """Send every rank its call."""
        self._store.forget()
        delays, held = ({one.rank: one.seconds for one in of} for of in (job.late, job.held))
        for rank, arguments in enumerate(job.arguments):
            dies = job.killed is not None and job.killed.rank == rank
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
                    killed_at=job.killed.step if job.killed is not None and dies else None,
                    follows=job.follows,
                    replicas=job.replicas,
                    delay=delays.get(rank, 0.0),
                    held=held.get(rank, 0.0),
                ),
            )

    def _watch(self, job: Job, call: CallSupervision, before: TrafficCounts | None) -> _Found:
        """Wait until a job is over, and return what was found."""
        failure = call.wait_until_returned()
        # of several groups, some ranks may have made more than others
        reusable = failure is not None and not self._subgroups and call.reusable
        trace = call.matcher.trace()
        if self._connects_by_store:
            trace = replace(trace, connected=self._store.groups)
        moved = None
        after = self._launcher.counts() if failure is None else None
        if before is not None and after is not None:
            # what a killed rank had handed to the network may not have left it, and what others
            # have given up on may still come
            if job.killed is None and not job.late:
                failure = (after - before).contradiction(trace, self._store.connections)
            moved = (after - before).payload
        results: tuple[RankResult, ...] = ()
        if call.returned:
            try:
                results = tuple(
                    RankResult(None, arguments)
                    if reply is None
                    else _result(reply, len(arguments), job)
                    for reply, arguments in zip(call.replies(), job.arguments, strict=True)
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
        self._supervisor.channels.send(rank, message)

    def _addresses(self, rank: int) -> int:
        """Return the bytes that the addresses of a rank's groups may take in the store."""
        assert self._supervisor is not None
        begun = self._supervisor.call.matcher.operations[rank]
        return (_ADDRESS + _PEER * self.size) * sum(op.kind == "new_group" for op in begun)

    def close(self) -> None:
        """Kill every rank; :meth:`Launcher.settle` waits until they are gone."""
        if self._supervisor is not None:
            self._supervisor.close()
        self.handle.close()
        if self._job is not None:
            self._job.close()
            self._job = None

    def __enter__(self) -> ProcessWorld:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill every rank, and wait until it is gone."""
        self.close()
        self._launcher.settle()


def _result(reply: Returned, arguments: int, job: Job) -> RankResult:
    """Return a rank's answer as a result.

    Raises:
        BrokenFrame: the answer was forged.
        MemoryError: the judge has no memory for it.
    """
    after = unpack(reply.arguments, limit=job.answer_limit)
    if not isinstance(after, tuple) or len(after) != arguments:
        raise BrokenFrame(f"it has not {arguments} arguments")
    places = set(map(str, range(arguments)))
    if not places.issuperset([*reply.aliases, *reply.replaced]):
        raise BrokenFrame("it shares or has replaced arguments that are not there")
    aliases = tuple(map(int, reply.aliases))
    replaced = tuple(map(int, reply.replaced))
    changes: tuple[ArgumentChange, ...] = ()
    unseen: tuple[str, ...] = ()
    if job.follows:
        changes = tuple(
            ArgumentChange(name, unpack(before), unpack(now)) for name, before, now in reply.changes
        )
        unseen = tuple(reply.unseen)
    value, drew, nbytes = unpack(reply.value, limit=job.answer_limit), reply.drew, reply.nbytes
    return RankResult(
        value, after, aliases, reply.time, replaced, reply.omitted, drew, changes, unseen, nbytes
    )


# The largest world. ---------------------------------------------------------------

GREETING = """
import torch.distributed as dist

def greet(x):
    dist.all_reduce(x)
    return x
"""

#: Whether ranks can share a device, by backend and number of devices, once it was tried.
shared_devices: dict[tuple[str, int], bool] = {}


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
    if (backend, count) not in shared_devices:
        program = Program.from_source(GREETING, "greet")
        # an argument is put on the rank's device
        each = ((torch.ones(1),),) * (count + 1)
        job = Job("greet", each, allowed=None, seconds=SETUP_SECONDS)
        try:
            with ProcessWorld(launcher, count + 1, program, backend=backend) as world:
                shared_devices[backend, count] = world.run(job).failure is None
        except WorldError:
            shared_devices[backend, count] = False
    return None if shared_devices[backend, count] else count
