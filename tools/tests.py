"""Runs the tests, of the code and of the notebooks: ``make test`` and its two longer forms.

    python -m tools.tests               # make test: what a contributor waits for
    python -m tools.tests --ci          # make test-ci: what CI runs for every change
    python -m tools.tests --all         # make test-all: everything, which runs each night
    python -m tools.tests -k sandbox    # any other options are pytest's: no notebooks

There are thousands of known answers.  ``make test`` judges one wrong answer for each exercise and
for each diagnosis, and runs the solved notebooks of the chapters that have changed and of a few
others.  CI judges a few more wrong ones for each exercise, and runs besides what is marked
``exhaustive``, all solved notebooks, which check a right answer to each exercise, and the students'
edition of those chapters.  What is marked ``nightly``, all other answers among it, is left to
``make test-all``, and so are the other students' notebooks.

A run that its time limit ends has shown what failed until then: a test that fails is printed at
once, and a notebook when it is done.

``make test`` also records which functions each test runs, for ``make quick``, and fails where those
of a room are fewer than its floor (:mod:`tools.coverage.floors`).

The notebooks run beside the tests of the code, since they wait more than they compute: for kernels
that start, and for ranks that hang.  Once the tests of the code are done, two run at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.coverage import floors
from tools.quick import TREES, changed, chapters

ROOT = Path(__file__).resolve().parent.parent

#: pytest's options for the tests of the code.  Groups of tests share what takes long to make.
CODE = (
    *("-n", str(max(os.cpu_count() or 1, 2)), "--dist", "loadgroup", "--durations", "10"),
    *("-p", "tools.tests", *TREES),
)

#: pytest's options for each edition of the notebooks.  In the solved one stored outputs are
#: compared; the students' has only to run.
NOTEBOOKS = {
    "solutions": ("--nbval", "--nbval-sanitize-with", "tests/nbval.cfg"),
    "notebooks": ("--nbval-lax",),
}

#: Chapters that ``make test`` runs whether or not they have changed, for what is in them: real
#: ranks, checks with their pictures, measured times, simulated ranks, training, deadlocks.
SAMPLE = ("00", "02", "08", "14", "16", "31")

#: About how many of the students' notebooks that have changed CI runs, spread over the course.
MOST_STUDENTS = 6

#: Commits to compare with, the first that exists: what others have of this work.
BASES = ("origin/main", "main", "HEAD")

#: The same for CI, where the work may be what others have already.
BASES_OF_CI = ("HEAD~100", "HEAD")


@dataclass(frozen=True)
class Level:
    """What one of the forms runs.

    Attributes:
        marks: which tests of the code, as pytest's ``-m`` takes it.
        editions: of the notebooks.
        minutes: it may take on two idle cores; where there is no such limit, 0.
    """

    marks: str
    editions: Sequence[str]
    minutes: int = 0


#: By option.
LEVELS = {
    "": Level("not exhaustive and not nightly", ["solutions"], minutes=10),
    "--ci": Level("not nightly", [*NOTEBOOKS], minutes=30),
    "--all": Level("", [*NOTEBOOKS]),
}
_NBVAL = ("-q", "--nbval-cell-timeout", "300", "--timeout", "900", "-p", "no:cacheprovider")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print what has failed, as pytest's plugin: its own summary comes at the end."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid}\n{report.longreprtext}", flush=True)


def start(options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start pytest."""
    return subprocess.Popen([sys.executable, "-m", "pytest", *options], cwd=ROOT)


def run_notebook(edition: str, path: str) -> int:
    """Run a notebook and print what pytest says of it; return pytest's exit status."""
    command = [sys.executable, "-m", "pytest", *_NBVAL, *NOTEBOOKS[edition], path]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    print(f"\n{path}\n{done.stdout.decode(errors='replace')}", flush=True)
    return done.returncode


def notebooks(
    root: Path = ROOT, edition: str = "solutions", bases: Sequence[str] = BASES
) -> list[str]:
    """Return the notebooks of a sample of chapters, and of those that have changed.

    Without a history nothing is known to be unchanged: it is all of them.  Those with the most
    cells come first, so that no long one is left to run alone at the end.
    """
    found = root.glob(f"{edition}/*.ipynb")
    for base in bases:
        asked = ["git", "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"]
        if subprocess.run(asked, cwd=root, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            differ = changed(base, root)
            if edition == "solutions":
                numbers = {*SAMPLE, *chapters(differ)}
            else:  # what hints say shows in solved cells only
                own = {Path(path).name[:2] for path in differ if path.startswith(f"{edition}/")}
                # a line that all chapters share is the same in a part of them
                numbers = {*SAMPLE, *sorted(own)[:: len(own) // MOST_STUDENTS + 1]}
            found = (path for one in numbers for path in root.glob(f"{edition}/{one}_*.ipynb"))
            break
    cells = {path: path.read_text("utf-8").count('"cell_type": "code"') for path in found}
    longest = sorted(cells, key=lambda path: (-cells[path], path))
    return [path.relative_to(root).as_posix() for path in longest]


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 0 if nothing failed."""
    level = LEVELS.get(" ".join(arguments))
    if level is None:
        return start([*CODE, *arguments]).wait()
    started = time.monotonic()
    bases: dict[str, Sequence[str]] = {}  # by edition that is not run as a whole
    if not arguments:
        bases["solutions"] = BASES
    elif level.minutes:
        bases["notebooks"] = BASES_OF_CI
    record = () if arguments else ("-p", "tools.coverage.plugin")
    with ThreadPoolExecutor(2) as pool:
        # the thread that is done with the code helps with what is left of the notebooks
        runs = [pool.submit(lambda: start([*record, *CODE, "-m", level.marks]).wait())]
        runs += [
            pool.submit(run_notebook, edition, path)
            for edition in level.editions
            for path in notebooks(ROOT, edition, bases.get(edition, ()))
        ]
        statuses = [run.result() for run in runs]
    if not arguments:
        print("What the tests run of each room:")
        statuses.append(floors.main([]))
    took = (time.monotonic() - started) / 60
    budget = f", of {level.minutes} that it may take on two idle cores" * bool(level.minutes)
    print(f"\n{took:.1f} minutes{budget}", flush=True)
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
