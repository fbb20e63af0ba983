"""Runs the tests, of the code and of the notebooks: ``make test`` and its two longer forms.

    python -m tools.tests               # make test: what a contributor waits for
    python -m tools.tests --ci          # make test-ci: what CI runs for every change
    python -m tools.tests --all         # make test-all: everything, which runs each night
    python -m tools.tests -k sandbox    # any other options are pytest's: no notebooks

There are thousands of known answers.  ``make test`` judges one wrong answer for each exercise and
for each diagnosis, and runs the solved notebooks of the chapters that have changed and of a few
others.  CI judges a few more for each exercise, and runs besides what is marked ``exhaustive``,
all solved notebooks, and the students' edition of those chapters.  What is marked ``nightly``, all
other answers among it, is left to ``make test-all``, and so are the other students' notebooks.

``make test`` also records which functions each test runs, for ``make quick``, and fails where those
of a room are fewer than its floor (:mod:`tools.coverage.floors`).

The notebooks run beside the tests of the code, one edition after the other, since they wait more
than they compute: for kernels that start, and for ranks that hang.  What they print follows at the
end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.coverage import floors
from tools.quick import TREES, changed, chapters

ROOT = Path(__file__).resolve().parent.parent

#: pytest's options for the tests of the code.  Groups of tests share what takes long to make.
CODE = ("-n", str(max(os.cpu_count() or 1, 2)), "--dist", "loadgroup", "--durations", "10", *TREES)

#: pytest's options for each edition of the notebooks.  In the solved one stored outputs are
#: compared; the students' has only to run.
NOTEBOOKS = {
    "solutions": ("--nbval", "--nbval-sanitize-with", "tests/nbval.cfg"),
    "notebooks": ("--nbval-lax",),
}

#: Chapters that ``make test`` runs whether or not they have changed, for what is in them: real
#: ranks, checks with their pictures, measured times, simulated ranks, training, deadlocks.
SAMPLE = ("00", "02", "08", "14", "16", "31")

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
_NBVAL = ("--nbval-cell-timeout", "300", "--timeout", "900", "-p", "no:cacheprovider")


def start(options: Sequence[str], output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start pytest, which writes to ``output`` if one is given."""
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT, stdout=output, stderr=None if output is None else subprocess.STDOUT,
    )  # fmt: skip


def notebooks(
    root: Path = ROOT, edition: str = "solutions", bases: Sequence[str] = BASES
) -> list[str]:
    """Return the notebooks of a sample of chapters, and of those that have changed.

    Without a history nothing is known to be unchanged: it is the folder of all.
    """
    for base in bases:
        asked = ["git", "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"]
        if subprocess.run(asked, cwd=root, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            differ = changed(base, root)
            if edition == "solutions":
                numbers = {*SAMPLE, *chapters(differ)}
            else:  # what hints say shows in solved cells only
                own = [Path(path) for path in differ if path.startswith(f"{edition}/")]
                numbers = {*SAMPLE, *(path.name[:2] for path in own)}
            paths = (path for one in numbers for path in root.glob(f"{edition}/{one}_*.ipynb"))
            return sorted(path.relative_to(root).as_posix() for path in paths)
    return [edition]


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 0 if nothing failed."""
    level = LEVELS.get(" ".join(arguments))
    if level is None:
        return start([*CODE, *arguments]).wait()
    started = time.monotonic()
    paths = {edition: [edition] for edition in level.editions}
    if not arguments:
        paths["solutions"] = notebooks()
    elif level.minutes:
        paths["notebooks"] = notebooks(ROOT, "notebooks", BASES_OF_CI)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        outputs = {edition: Path(folder) / edition for edition in level.editions}

        def run(edition: str) -> int:
            with outputs[edition].open("wb") as output:
                return start([*_NBVAL, *NOTEBOOKS[edition], *paths[edition]], output).wait()

        runs = {edition: beside.submit(run, edition) for edition in level.editions}
        record = () if arguments else ("-p", "tools.coverage.plugin")
        statuses = [start([*record, *CODE, "-m", level.marks]).wait()]
        for edition, done in runs.items():
            statuses.append(done.result())
            print(f"\n{edition}/\n{outputs[edition].read_text(errors='replace')}", flush=True)
    if not arguments:
        print("What the tests run of each room:")
        statuses.append(floors.main([]))
    took = (time.monotonic() - started) / 60
    budget = f", of {level.minutes} that it may take on two idle cores" * bool(level.minutes)
    print(f"\n{took:.1f} minutes{budget}", flush=True)
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
