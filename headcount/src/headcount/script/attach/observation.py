"""A job is looked at from outside, twice."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil

from headcount.core.errors import RequestError
from headcount.script.attach.kernel import file_lock, network_of, sleeps_in, why_denied
from headcount.script.attach.own_torch import OwnTorch
from headcount.script.attach.process_memory import Memory, UnknownLayout
from headcount.script.attach.processes import LiveJob, find_job
from headcount.script.attach.readings import JobReadings, RankReading, WorkerReading
from headcount.script.attach.recorder_memory import KnownRecorder, read_recorder
from headcount.script.attach.stacks import NoStack, own_frame, stack_of, torch_call
from headcount.script.attach.store_keys import ranks_at
from headcount.trace.flight_recorder import DumpEntry

__all__ = ["Observer"]

#: Processes below a rank that are looked at; a loader has fewer workers.
_WORKERS = 64


class Observer:
    """Looks at the ranks of a job that run on this machine.

    Args:
        pids: processes of the job.
        store: the address of its store, if it is given.

    Raises:
        RequestError: they are of no job, or the store does not answer.
    """

    def __init__(self, pids: Sequence[int], store: tuple[str, int] | None = None) -> None:
        self._torch = OwnTorch()
        arrived = None
        if store is not None:
            try:
                arrived = self._torch.arrivals(*store)
            except (OSError, RuntimeError, UnknownLayout) as error:
                raise RequestError(
                    f"no store answers at {store[0]}:{store[1]}: {_first_line(error)}"
                ) from None
        try:
            self.job: LiveJob = find_job(pids)
        except RequestError:
            if arrived is None:
                raise
            self.job = find_job(pids, arrived.get("0", {}))
        self._store = store or self.job.store
        pid = next(iter(self.job.ranks.values())).pid
        if store is None and network_of(pid) not in (network_of(os.getpid()), None):
            # its address may be that of another job's store here
            self._store = None
            self.job.notes.append(
                "the job's store is in a network of its own, as containers have, and was not read:"
                f" attach there, or by nsenter -t {pid} -n"
            )
        self._recorder: KnownRecorder | str
        try:
            self._recorder = self._torch.known_recorder()
        except (UnknownLayout, OSError) as error:
            self._recorder = _first_line(error)
        self._seen: defaultdict[int, dict[bytes, DumpEntry]] = defaultdict(dict)

    def look(self) -> JobReadings:
        """Read everything for the first time; the second reading is the same one as yet."""
        first = self._read()
        notes = list(self.job.notes)
        members = self._members(notes)
        return JobReadings(
            self.job.name, self.job.world, self.job.started, first, first,
            members, members, notes,
        )  # fmt: skip

    def look_again(self, readings: JobReadings) -> None:
        """Replace the second reading by a new one."""
        readings.last = self._read()
        readings.notes = list(self.job.notes)
        readings.members = self._members(readings.notes)

    def _read(self) -> dict[int, RankReading]:
        # py-spy is a process of its own, so that threads are enough
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(self._rank_reading, self.job.ranks.values())
            return dict(zip(self.job.ranks, found, strict=True))

    def _members(self, notes: list[str]) -> dict[str, dict[int, int | None]]:
        if self._store is None:
            return {}
        try:
            pids = {rank: process.pid for rank, process in self.job.ranks.items()}
            return ranks_at(self._torch.arrivals(*self._store), pids)
        except (OSError, RuntimeError, UnknownLayout, psutil.Error) as error:
            where = "{}:{}".format(*self._store)
            notes.append(f"the job's store at {where} cannot be read: {_first_line(error)}")
            return {}

    def _rank_reading(self, process: psutil.Process) -> RankReading:
        """Read one rank: what cannot be read is noted with its reason."""
        found = RankReading(process.pid, time.time())
        try:
            with process.oneshot():
                found.state = process.status()
                times, switches = process.cpu_times(), process.num_ctx_switches()
                found.cpu = times.user + times.system
                found.switches = switches.voluntary + switches.involuntary
            found.sleeps_in = sleeps_in(process.pid)
            found.lock = file_lock(process)
        except psutil.NoSuchProcess:
            found.state = psutil.STATUS_DEAD
            return found
        if found.state == psutil.STATUS_ZOMBIE:
            return found
        try:
            Memory(process.pid).close()
        except OSError:
            found.unread = dict.fromkeys(("calls", "lines"), why_denied(process))
            return found
        try:
            if isinstance(self._recorder, str):
                raise UnknownLayout(self._recorder)
            found.calls = read_recorder(process.pid, self._recorder, self._seen[process.pid])
        except (OSError, UnknownLayout) as error:
            found.unread["calls"] = _first_line(error)
        try:
            found.frames = stack_of(process.pid)
            # a rank in a collective does not wait for its own workers
            found.workers = [] if torch_call(found.frames) else _workers(process)
        except NoStack as error:
            found.unread["lines"] = _first_line(error)
        return found


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _workers(process: psutil.Process) -> list[WorkerReading]:
    """Return the processes below a rank that stand in a line of the person's own."""
    found = []
    with contextlib.suppress(psutil.Error):
        for child in process.children(recursive=True)[:_WORKERS]:
            with contextlib.suppress(NoStack):
                frames = stack_of(child.pid)
                # a fork has its parent's frames outside of its own
                begin = [n for n, one in enumerate(frames) if one.name.endswith("_bootstrap")]
                own = own_frame(frames[: begin[0]] if begin else frames)
                if own is not None:
                    found.append(WorkerReading(child.pid, [own], file_lock(child)))
    return found
