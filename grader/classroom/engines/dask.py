"""Submissions judged by a Dask cluster: other machines, or SLURM's.

Every Dask worker needs what this machine needs to grade: the course, its
packages, and bubblewrap.  Orders carry the files, so no shared folder does.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from grader.classroom.engines import work
from grader.classroom.messages import (
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    Told,
    Workers,
)
from grader.core.errors import RequestError, WorldError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskEngine", "connect", "slurm"]

#: A worker that dies over a submission takes it along; another one tries again.
_TRIES = 2

#: Seconds in which a scheduler must answer.
_ANSWER = 10

#: Seconds between two looks at how many workers there are, while none has ended its order.
_LOOK = 1.0

#: Orders beyond those at work that wait in the cluster already, for each worker.
_AHEAD = 1


class DaskEngine:
    """Workers of a Dask cluster, each with one submission at a time.

    Args:
        client: of the cluster.
        cluster: to be closed with it, if it is our own.
    """

    def __init__(self, client: Client, cluster: Any = None) -> None:
        self._client = client
        self._cluster = cluster
        self._address = client.scheduler.address if client.scheduler is not None else "?"

    def run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        """See :class:`grader.classroom.engines.Engine`.

        Raises:
            WorldError: the scheduler has ended.
        """
        try:
            yield from self._run(orders)
        except (OSError, CancelledError) as error:
            # it would go on to tell of every attempt to reach it
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
            raise WorldError(
                f"the Dask scheduler at {self._address} does not answer any more;"
                " every verdict so far is stored: start it and grade again"
            ) from error

    def _run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        from distributed import wait

        coming = iter(orders)
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
                ended = wait(list(given), timeout=_LOOK, return_when="FIRST_COMPLETED").done
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

    def _submit(self, order: GradingRequest) -> Any:
        with warnings.catch_warnings():
            # of "large graphs": a submission's files are what has to travel
            warnings.simplefilter("ignore", UserWarning)
            # pure=False: the same files are judged again when that is asked for
            return self._client.submit(carry_out, order, pure=False, retries=_TRIES - 1)

    def _threads(self) -> int:
        """How many submissions the cluster can judge at a time, now."""
        return sum(self._client.nthreads().values())

    def close(self) -> None:
        """Stop all work."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def carry_out(order: GradingRequest) -> list[Told | SubmissionJudged | SubmissionLost]:
    """In a Dask worker: one submission, in a process of its own.

    A Dask worker runs tasks in threads, and may not start processes by
    ``multiprocessing``; a judge wants a process to itself.
    """
    done = subprocess.run(
        [sys.executable, "-m", work.__name__],
        input=pickle.dumps(order),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f"status {done.returncode}" + "".join(f": {line}" for line in last)
        return [SubmissionLost(order.key, f"the process that judged it ended: {why}")]
    told: list[Told | SubmissionJudged | SubmissionLost] = pickle.loads(done.stdout)
    return told


def connect(scheduler: str | None, jobs: int | None) -> DaskEngine:
    """An engine on the cluster at an address, or on one of this machine.

    Raises:
        RequestError: Dask is not installed, or nobody answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise RequestError(_INSTALL) from None
    if scheduler is None:
        from grader.classroom.engines.local import cores

        cluster = LocalCluster(
            n_workers=jobs or cores(), threads_per_worker=1, dashboard_address=":0"
        )
        return DaskEngine(Client(cluster), cluster)
    try:
        return DaskEngine(Client(scheduler, timeout=_ANSWER))
    except (OSError, ValueError) as error:
        raise RequestError(f"no Dask scheduler answers at {scheduler}: {error}") from None


def slurm(jobs: int | None, **settings: Any) -> DaskEngine:
    """An engine on a SLURM cluster.

    Args:
        jobs: how many of SLURM's; what a job is (queue, cores, memory, time)
            stands in dask-jobqueue's configuration,
            https://jobqueue.dask.org/en/latest/clusters-configuration.html
        settings: what shall not be as in the configuration.

    Raises:
        RequestError: this is no place to submit jobs from, or dask-jobqueue is
            not installed or not configured.
    """
    try:
        import dask
        from dask_jobqueue.slurm import SLURMCluster
        from distributed import Client
    except ImportError:
        raise RequestError(_INSTALL) from None
    if shutil.which("sbatch") is None:
        raise RequestError("sbatch is not installed here; grade where SLURM jobs are submitted")
    for needed in ("cores", "memory"):
        if not settings.get(needed) and not dask.config.get(f"jobqueue.slurm.{needed}", None):
            raise RequestError(
                f"dask-jobqueue is not configured for this cluster: its {needed} are not set;"
                " see docs/grading.md for an example"
            )
    # no page to look at: its port would have to be free
    cluster = SLURMCluster(scheduler_options={"dashboard_address": ":0"}, **settings)
    cluster.scale(jobs=jobs or 1)
    return DaskEngine(Client(cluster), cluster)


_INSTALL = "Dask is not installed: pip install 'gather-round[class]'"
