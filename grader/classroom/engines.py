"""Engines, which have submissions judged by processes of this machine or of a cluster.

An engine takes requests and yields the events of their grading.  It judges nothing and
stores nothing, so a verdict does not depend on the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from grader.classroom.messages import (
    ExerciseJudged,
    GradingEvent,
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    WorkerReady,
    Workers,
)
from grader.sandbox.sandboxes import SandboxPool, adopt
from headcount.core.errors import RequestError, WorldError, signal_name
from headcount.launch.launchers import has_one_thread

if TYPE_CHECKING:
    from distributed import Client, Security

_log = logging.getLogger(__name__)


class Engine(Protocol):
    """A way to judge submissions side by side."""

    def run(self, requests: Iterable[GradingRequest]) -> Iterator[GradingEvent | Workers]:
        """Yield the events of all requests as they happen.

        The last event of a request is :class:`SubmissionJudged` or
        :class:`SubmissionLost`.  A request is taken from the iterable when a worker is
        free for it, so requests may be made one by one.
        """
        ...

    def close(self) -> None:
        """Stop all work."""
        ...


# Processes of this machine. -------------------------------------------------------

#: Times that a request is tried, since its worker may have died for another reason.
_TRIES = 2

#: Seconds that workers have to clean up and end before they are killed.
_PATIENCE = 10.0

#: Seconds beyond a submission's limit after which its worker is ended.  A sandbox is ended at the
#: limit; what is left then, the judge computes by itself.
GRACE = 60.0


def cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalEngine:
    """Worker processes that judge one submission after the other.

    A worker runs no code of a submission itself, so it is used again; every
    submission has a sandbox of its own.

    A process with a single thread forks all its workers at once, since torch takes seconds to
    import, and they share a pool of sandboxes.  Otherwise, and in place of one that has died, a
    worker is a new interpreter, started when it is needed, with a pool of its own.

    Args:
        jobs: number of workers; the number of processors if not given.
        hidden: folders that the workers' sandboxes must not show, see
            :class:`grader.sandbox.sandboxes.SandboxPool`.  None for no sandboxes.

    Raises:
        WorldError: no sandbox can be started.
    """

    def __init__(self, jobs: int | None = None, hidden: Sequence[Path] | None = None) -> None:
        self._jobs = jobs or cores()
        self._workers: list[_Worker] = []
        self._pool: SandboxPool | None = None
        try:
            if has_one_thread():
                self._fork_workers(hidden)
        except BaseException:
            self.close()
            raise

    def _fork_workers(self, hidden: Sequence[Path] | None) -> None:
        """Fork all workers, with one pool of sandboxes if there are to be any."""
        if hidden is not None:
            self._pool = SandboxPool(hidden)
        # while the pool imports torch, too; no worker has to import it again
        import grader.classroom.grading  # noqa: F401

        if has_one_thread():
            if self._pool is not None:
                self._pool.wait()
            for _ in range(self._jobs):
                pipes = [one.pipe for one in self._workers]
                self._workers.append(_Worker(pipes, self._pool))

    def run(self, requests: Iterable[GradingRequest]) -> Iterator[GradingEvent]:
        """See :class:`Engine`."""
        coming = iter(requests)
        again: list[tuple[GradingRequest, int]] = []
        while True:
            self._assign(coming, again)
            busy = [worker for worker in self._workers if worker.request is not None]
            if not busy:
                return
            until = min(worker.until for worker in busy)
            left = None if until == math.inf else max(until - time.monotonic(), 0.0)
            ready = wait([worker.pipe for worker in busy], left)
            for worker in busy:
                if worker.pipe not in ready:
                    if time.monotonic() > worker.until:
                        # whatever it computes: what a file holds must not stop the others
                        self._workers.remove(worker)
                        again.append((worker.end_overdue(), 0))
                    continue
                try:
                    event = worker.receive()
                except (EOFError, OSError):
                    self._workers.remove(worker)
                    request, tries, why = worker.reap()
                    _log.info("%s: its process ended %s, in attempt %d", request.key, why, tries)
                else:
                    if event is not None:
                        yield event
                    continue
                if tries < _TRIES:
                    again.append((request, tries))
                else:
                    yield SubmissionLost(
                        request.key, f"the process that judged it ended twice: {why}"
                    )

    def _assign(
        self, coming: Iterator[GradingRequest], again: list[tuple[GradingRequest, int]]
    ) -> None:
        """Give every idle worker a request, while there are requests."""
        while True:
            idle = next((worker for worker in self._workers if worker.request is None), None)
            if idle is None and len(self._workers) >= self._jobs:
                return
            if again:
                request, tries = again.pop()
            else:
                following = next(coming, None)
                if following is None:
                    return
                request, tries = following, 0
            if idle is None:
                idle = _Worker()
                self._workers.append(idle)
            idle.give(request, tries + 1)

    def close(self) -> None:
        """Stop all work."""
        for worker in self._workers:
            worker.stop()
        until = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.end(until)
        self._workers.clear()
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class _Worker:
    """One worker process, and the request that it is busy with.

    The process imports torch before it listens.  A request is larger than a pipe's
    buffer, so sending one before that would wait for the import, and the workers would
    start one after the other; hence a request is kept until its worker is ready.

    Args:
        others: to fork it, this process's ends of the pipes of other workers, which it must not
            keep open; None to start a new interpreter.
        pool: the pool of all forked workers' sandboxes; None to start one when it is needed.
    """

    def __init__(
        self, others: Sequence[Connection[Any, Any]] | None = None, pool: SandboxPool | None = None
    ) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self._process: ForkProcess | _Interpreter
        with _without_interrupts():
            if others is None:
                self._process = _Interpreter(theirs)
            else:
                arguments = (theirs, [*others, self.pipe], pool)
                self._process = ForkProcess(target=_serve_in_fork, args=arguments, daemon=False)
                self._process.start()
        theirs.close()
        self.request: GradingRequest | None = None
        #: when its request is overdue, on the monotonic clock
        self.until = math.inf
        self._planned: list[str] = []
        self._tries = 0
        self._ready = False

    def give(self, request: GradingRequest, tries: int) -> None:
        """Send it a request, at once or as soon as it listens."""
        self.request, self._tries = request, tries
        if self._ready:
            self._send()

    def _send(self) -> None:
        # of one that is overdue no file is looked at any more
        if self.request is not None and self.request.overdue is None:
            self.until = time.monotonic() + self.request.limits.submission + GRACE
        # it may have died, which is noticed when its end of the pipe is read
        with contextlib.suppress(OSError):
            self.pipe.send(self.request)

    def receive(self) -> GradingEvent | None:
        """Return the next event of its request, or None where it says that it is ready.

        Raises:
            EOFError, OSError: it has died.
        """
        event: GradingEvent | WorkerReady = self.pipe.recv()
        if isinstance(event, WorkerReady):
            self._ready = True
            self._send()
            return None
        if isinstance(event, (SubmissionJudged, SubmissionLost)):
            self.request, self.until = None, math.inf
        elif isinstance(event, SubmissionPlanned):
            self._planned = list(event.exercises)
        elif isinstance(event, ExerciseJudged):
            self._planned = [name for name in self._planned if name != event.verdict.name]
        return event

    def end_overdue(self) -> GradingRequest:
        """Kill it, and return the request for the verdicts that are still to be given."""
        assert self.request is not None
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return replace(self.request, overdue=tuple(self._planned))

    def reap(self) -> tuple[GradingRequest, int, str]:
        """Return a dead worker's request, how often it was tried, and how the worker died."""
        self._process.join()
        self.pipe.close()
        assert self.request is not None
        code = self._process.exitcode or 0
        why = f"by {signal_name(-code)}" if code < 0 else f"with status {code}"
        return self.request, self._tries, why

    def stop(self) -> None:
        """Ask it to end; an idle worker ends when its pipe is closed."""
        if self.request is not None:
            self._process.terminate()
        self.pipe.close()

    def end(self, until: float) -> None:
        """Wait for its end until a time, then kill it."""
        self._process.join(max(until - time.monotonic(), 0))
        self._process.kill()
        self._process.join()


#: The program of a new interpreter; its argument is the descriptor of its end of a pipe.
PROGRAM = [sys.executable, "-m", "grader.classroom.grading"]


class _Interpreter(subprocess.Popen[bytes]):
    """A worker's process in a new interpreter, held as a process of ``multiprocessing`` is.

    That package starts none in a worker of Dask, which is a daemon in its eyes.

    Args:
        pipe: the process's end of its pipe.
    """

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        number = pipe.fileno()
        super().__init__([*PROGRAM, str(number)], pass_fds=[number], stdin=subprocess.DEVNULL)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, at most so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout)

    @property
    def exitcode(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it."""
        return self.poll()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in processes that the block starts, until they set a handler of their own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_in_fork(
    pipe: Connection[Any, Any], parents: Sequence[Connection[Any, Any]], pool: SandboxPool | None
) -> None:
    """Serve in a fork, which has its parent's ends of pipes as well."""
    from grader.classroom.grading import serve

    for connection in parents:
        connection.close()  # or their peers would not see that the parent has closed them
    if pool is not None:
        adopt(pool)
    serve(pipe)


# A Dask cluster: other machines, or SLURM's. --------------------------------------
#
# Every Dask worker needs what this machine needs to grade: the course, its packages,
# and bubblewrap.  Requests carry the files, so the workers need no shared folder.

#: Seconds in which a scheduler must answer.
ANSWER = 10

#: Seconds between two looks at the number of workers, while no request ends.
_LOOK = 1.0

#: Requests that wait in the cluster for each worker, beyond the one that it works on.
_AHEAD = 1


class DaskEngine:
    """Workers of a Dask cluster, each with one submission at a time.

    Args:
        client: a client of the cluster.
        cluster: the cluster, if it is to be closed with the engine.
        folder: a folder of files for the cluster, which is removed with it.

    Attributes:
        client: the client of the cluster.
        address: where its scheduler is.
    """

    def __init__(
        self,
        client: Client,
        cluster: Any = None,
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.client = client
        self._cluster = cluster
        self._folder = folder
        self.address = client.scheduler.address if client.scheduler is not None else "?"

    def run(self, requests: Iterable[GradingRequest]) -> Iterator[GradingEvent | Workers]:
        """See :class:`Engine`.

        Raises:
            WorldError: the scheduler has ended.
        """
        try:
            yield from self._run(requests)
        except (OSError, CancelledError) as error:
            # the client would go on to log every attempt to reach it
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
            raise WorldError(
                f"the Dask scheduler at {self.address} does not answer any more;"
                " every verdict so far is stored: start it and grade again"
            ) from error

    def _run(self, requests: Iterable[GradingRequest]) -> Iterator[GradingEvent | Workers]:
        import distributed

        coming = iter(requests)
        given: dict[Any, str] = {}
        following = next(coming, None)
        threads = -1
        while following is not None or given:
            # asked each time: a queue may start workers late, and end them early
            before, threads = threads, self._threads()
            if threads != before:
                yield Workers(threads)
            while following is not None and len(given) < max(threads * (1 + _AHEAD), 1):
                given[self._submit(following)] = following.key
                following = next(coming, None)
            try:
                ended = distributed.wait(
                    list(given), timeout=_LOOK, return_when="FIRST_COMPLETED"
                ).done
            except (TimeoutError, asyncio.TimeoutError):  # one and the same from Python 3.11 on
                continue
            for future in ended:
                key = given.pop(future)
                if future.status == "cancelled":
                    raise CancelledError
                if future.status == "finished":
                    yield from future.result()
                else:
                    yield SubmissionLost(key, f"the cluster failed at it: {future.exception()}")

    def _submit(self, request: GradingRequest) -> Any:
        with warnings.catch_warnings():
            # Dask warns of "large graphs", but a submission's files have to travel
            warnings.simplefilter("ignore", UserWarning)
            # pure=False: the same files are judged again when the user asks for it
            return self.client.submit(carry_out, request, pure=False, retries=_TRIES - 1)

    def _threads(self) -> int:
        """Return the number of submissions that the cluster can judge at a time, now."""
        return sum(self.client.nthreads().values())

    def close(self) -> None:
        """Stop all work."""
        if self._cluster is None and self.client.status == "running":
            # the workers of somebody else's cluster stay; some may be gone
            with contextlib.suppress(OSError):
                self.client.run(end_idle, on_error="ignore")
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()
        if self._folder is not None:
            self._folder.cleanup()


#: In a Dask worker, the engines that judge nothing now; kept, since a new one imports torch.
_idle: list[LocalEngine] = []


def carry_out(request: GradingRequest) -> list[GradingEvent]:
    """Judge one submission in a Dask worker, which runs tasks in threads.

    A judge needs a process to itself, which stays for the submissions that follow.
    """
    try:
        engine = _idle.pop()
    except IndexError:
        engine = LocalEngine(1)
    try:
        return list(engine.run([request]))
    finally:
        _idle.append(engine)


def end_idle() -> None:
    """End the processes that judge nothing now, in a Dask worker."""
    while _idle:
        _idle.pop().close()


def warning_of(scheduler: str) -> str:
    """Return what to know about a scheduler that is reached without TLS, or an empty string.

    Dask's connections carry pickles and commands, and only TLS asks who is at their other end.
    """
    if scheduler.startswith(("tls://", "wss://")):
        return ""
    return (
        f"the Dask scheduler at {scheduler} is reached without TLS: whoever else can reach it can"
        " run commands on its workers and on this machine; docs/grading.md says how to mend that"
    )


@contextlib.contextmanager
def _without_pages() -> Iterator[None]:
    """Let schedulers and workers that are made here answer no request of a browser.

    They have an HTTP server in any case, and its pages show names and logs to everybody.
    """
    import dask

    pages = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
    with dask.config.set({name: [] for name in pages}):
        yield


#: Where that HTTP server listens: at any free port, and for this machine alone.
_LOOPBACK = "127.0.0.1:0"


def connect(scheduler: str | None, jobs: int | None) -> DaskEngine:
    """Return an engine on the cluster at an address, or on a new one of this machine.

    A new one listens on the loopback interface, and takes nothing from anybody who does not
    have the certificate that is made for it.

    Raises:
        RequestError: Dask is not installed, no scheduler answers, or this machine has no
            certificate to show one that asks for it.
    """
    try:
        from distributed import Client, LocalCluster, Security

        security = Security() if scheduler is not None else Security.temporary()
    except ImportError:  # of cryptography, which makes certificates, too
        raise RequestError(_INSTALL) from None
    if scheduler is None:
        with _without_pages():
            cluster = LocalCluster(
                n_workers=jobs or cores(),
                threads_per_worker=1,
                host="127.0.0.1",
                security=security,
                dashboard_address=_LOOPBACK,
                scheduler_kwargs={"dashboard": False},
            )
        return DaskEngine(Client(cluster), cluster)
    mine = security.get_tls_config_for_role("client")
    if scheduler.startswith("tls://") and not (mine["ca_file"] and mine["cert"]):
        raise RequestError(
            f"{scheduler} asks for a certificate, and Dask is not configured to show one; set"
            " distributed.comm.tls in ~/.config/dask, see docs/grading.md"
        )
    try:
        return DaskEngine(Client(scheduler, timeout=ANSWER, security=security))
    except (OSError, ValueError) as error:
        raise RequestError(f"no Dask scheduler answers at {scheduler}: {error}") from None


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep this process's handler of SIGINT while dask-jobqueue is imported, which sets its own."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def slurm(jobs: int | None, **settings: Any) -> DaskEngine:
    """Return an engine on a SLURM cluster.

    The scheduler takes nothing from anybody who does not have the certificate that is made for
    it.  Jobs read theirs from a folder that only this user may look into, below the one that
    dask-jobqueue's ``shared-temp-directory`` names, or else below the home directory.

    Args:
        jobs: number of SLURM jobs; dask-jobqueue's configuration says what a job is
            (queue, cores, memory, time),
            https://jobqueue.dask.org/en/latest/clusters-configuration.html
        settings: settings that replace those of the configuration.

    Raises:
        RequestError: jobs cannot be submitted from this machine, or dask-jobqueue is
            not installed or not configured.
    """
    try:
        import dask

        with _own_interrupts():
            from dask_jobqueue.slurm import SLURMCluster
        from distributed import Client, Security

        credentials = Security.temporary()
    except ImportError:  # of cryptography, which makes certificates, too
        raise RequestError(_INSTALL) from None
    if shutil.which("sbatch") is None:
        raise RequestError("sbatch is not installed here; grade where SLURM jobs are submitted")
    for needed in ("cores", "memory"):
        if not settings.get(needed) and not dask.config.get(f"jobqueue.slurm.{needed}", None):
            raise RequestError(
                f"dask-jobqueue is not configured for this cluster: its {needed} are not set;"
                " see docs/grading.md for an example"
            )
    configured = {
        name: dask.config.get(f"jobqueue.slurm.{name}", None)
        for name in ("scheduler-options", "worker-extra-args", "shared-temp-directory")
    }
    shared = os.path.expanduser(os.path.expandvars(configured["shared-temp-directory"] or "~"))
    try:
        folder = tempfile.TemporaryDirectory(prefix=".gather-round-", dir=shared)
    except OSError as error:
        raise RequestError(
            f"the certificate for SLURM's jobs cannot be written below {shared}"
            f" ({error.strerror}); name a folder that all machines share as"
            " jobqueue.slurm.shared-temp-directory in ~/.config/dask/jobqueue.yaml"
        ) from None
    with _without_pages():
        cluster = SLURMCluster(
            security=write_credentials(credentials, Path(folder.name)),
            scheduler_options={
                **(configured["scheduler-options"] or {}),
                "dashboard_address": _LOOPBACK,
                "dashboard": False,
            },
            worker_extra_args=[
                *(configured["worker-extra-args"] or []),
                *("--no-dashboard", "--dashboard-address", _LOOPBACK),
            ],
            **settings,
        )
    cluster.scale(jobs=jobs or 1)
    return DaskEngine(Client(cluster), cluster, folder)


def write_credentials(credentials: Any, folder: Path) -> Security:
    """Return TLS settings whose certificate and key are written to files in a folder."""
    from distributed import Security

    found = credentials.get_tls_config_for_role("worker")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(found["cert"], encoding="ascii")
    key.write_text(found["key"], encoding="ascii")
    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=str(certificate),  # it has signed itself
        **{f"tls_{role}_cert": str(certificate) for role in roles},
        **{f"tls_{role}_key": str(key) for role in roles},
    )


_INSTALL = "Dask, or cryptography, is not installed: pip install 'gather-round[class]'"
