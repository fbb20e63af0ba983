"""A class graded on a Dask cluster: what it adds, and what becomes of its workers.

Submissions of up to three exercises, right and wrong (those of ``benchmarks.graders``), are graded
by ``python -m grader grade``: on this machine with as many workers, then on a cluster whose
scheduler and workers are processes of this machine.  Last comes a cluster that nobody would
wish for: its workers come late, one after the other, and every so many seconds one is killed and
another one joins.  Each verdict must be the one that its submission gets when it is graded first
of all, alone with its like.

CPU seconds are the whole machine's, so nothing else should run meanwhile.

Run with ``python -m benchmarks.cluster``.  With ``--workers`` and nothing behind it there is only
the last cluster: ``--submissions 1000 --workers --troubled 2`` takes three quarters of an hour, and
with ``--exercises 1`` a quarter of one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.classroom import Run, Student, grade
from benchmarks.graders.classwork import EXERCISES, IMPORTS, WRONG, submissions
from grader.exercise.verdict import ExerciseVerdict

#: Seconds between the arrivals of two workers of the cluster that loses some.
LATE = 5.0

#: Different submissions in the class.
DIFFERENT = 10


@dataclass
class Cluster:
    """A scheduler and its workers, as processes.

    Attributes:
        address: the scheduler's address.
        lost: workers killed so far.
    """

    address: str
    lost: int = 0

    def __post_init__(self) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []

    def join(self) -> None:
        """Start one more worker."""
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address]
        command += ["--nthreads", "1", "--no-dashboard"]
        # in a session of its own, with the process that looks after it
        self._workers.append(
            subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        )

    def lose(self, choice: random.Random) -> None:
        """Kill a worker."""
        worker = self._workers.pop(choice.randrange(len(self._workers)))
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        self.lost += 1

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster without workers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
        command += ["--dashboard-address", ":0", "--scheduler-file", str(file)]
        scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            while not file.exists() or not file.read_text().strip():
                if scheduler.poll() is not None:
                    raise SystemExit("the scheduler has ended")
                time.sleep(0.1)
            made = Cluster(json.loads(file.read_text())["address"])
            try:
                yield made
            finally:
                made.close()
        finally:
            scheduler.terminate()
            scheduler.wait()


class Trouble(threading.Thread):
    """Lets workers come late, and then kills one every so many seconds and starts another.

    Args:
        cluster: the cluster, without workers yet.
        workers: how many come.
        period: seconds between two kills.
    """

    def __init__(self, cluster: Cluster, workers: int, period: float) -> None:
        super().__init__()
        self._cluster, self._workers, self._period = cluster, workers, period
        self._over = threading.Event()
        self._random = random.Random(1)

    def run(self) -> None:
        """Make trouble until :meth:`stop`."""
        for _ in range(self._workers):
            if self._over.wait(LATE):
                return
            self._cluster.join()
        while not self._over.wait(self._period):
            self._cluster.lose(self._random)
            self._cluster.join()

    def stop(self) -> None:
        """Stop, and wait for its end."""
        self._over.set()
        self.join()


def students(count: int, exercises: int = len(EXERCISES)) -> list[Student]:
    """A class of so many, seven right ones in ten; each tenth student hands in the same.

    Args:
        count: the number of students.
        exercises: how many exercises each hands in, the first of all.
    """
    handed = submissions(DIFFERENT)
    found = []
    for number in range(count):
        one = handed[number % len(handed)]
        name = f"student {number:04d}"
        # with a name in it: files that are alike would be reported as such
        answers = {exercise: one.answers[exercise] for exercise in EXERCISES[:exercises]}
        text = "\n\n\n".join([f"# {name}", IMPORTS, *answers.values()])
        changed = frozenset(answers) & {WRONG[one.kind][0] if one.kind in WRONG else ""}
        found.append(Student(name, one.kind, {"answers.py": text.encode()}, changed))
    return found


def differing(first: Run, run: Run, handed: Sequence[Student]) -> int:
    """The number of verdicts of a run that are missing, or not those of the first run."""
    found = 0
    for number, student in enumerate(handed):
        row = run.rows.get(student.name, {})
        for name, verdict in first.rows[handed[number % DIFFERENT].name].items():
            found += name not in row or _outcome(row[name]) != _outcome(verdict)
    return found


def _outcome(verdict: ExerciseVerdict) -> object:
    """What does not depend on the numbers that were drawn, since each student has a seed."""
    cases = [(case.name, case.world_size, case.status, case.diagnosis) for case in verdict.cases]
    return verdict.status, verdict.diagnosis, verdict.score, cases


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade the class everywhere, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument(
        "--exercises", type=int, default=len(EXERCISES), choices=range(1, len(EXERCISES) + 1)
    )
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--troubled", type=int, default=4, help="workers of the last cluster")
    parser.add_argument("--period", type=float, default=60, help="seconds between two kills")
    request = parser.parse_args(arguments)

    handed = students(request.submissions, request.exercises)
    first = grade(handed[:DIFFERENT], 1)
    runs: dict[str, Run] = {}
    for workers in request.workers:
        runs[f"this machine, {workers}"] = grade(handed, workers)
        with cluster() as made:
            for _ in range(workers):
                made.join()
            runs[f"Dask, {workers}"] = grade(handed, scheduler=made.address)
    with cluster() as made:
        trouble = Trouble(made, request.troubled, request.period)
        trouble.start()
        try:
            late = f"Dask, {request.troubled} that come late"
            runs[late] = grade(handed, scheduler=made.address)
        finally:
            trouble.stop()
        lost = made.lost

    table = Table(
        title=f"{len(handed)} submissions, exercises in each: {request.exercises}",
        caption=f"{lost} workers were killed in the last run, one every {request.period:g} s",
    )
    for heading in ("workers", "s", "a minute", "CPU s each", "rows", "other verdicts"):
        table.add_column(heading, justify="left" if heading == "workers" else "right")
    for name, run in runs.items():
        table.add_row(
            name,
            f"{run.wall:.0f}",
            f"{60 * len(handed) / run.wall:.1f}",
            f"{run.cpu / len(handed):.2f}",
            f"{len(run.rows)}",
            f"{differing(first, run, handed)}",
        )
    Console(width=80).print(table)
    complete = all(len(run.rows) == len(handed) for run in runs.values())
    return 0 if complete and not any(differing(first, run, handed) for run in runs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
