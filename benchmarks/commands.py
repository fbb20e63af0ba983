"""What the commands cost that people wait for, each started as a person would start it.

Times are those of a new process, the lowest of three, with all files in memory: what else the
machine does only adds to it.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.classroom import ROOT, Student, full, grade
from benchmarks.figures import Figure

__all__ = ["figures"]

#: Seconds that a command may take that runs nothing, and that a check may take to its first line,
#: and to its verdict.
QUICK, FIRST_LINE, VERDICT = 0.5, 1.0, 2.5

#: Seconds that the grading of two exercises of one submission may take, as each container of
#: Gradescope does it.
TWO = 3.0

#: The parts of the course: their chapters, and the seconds of processor time that a submission with
#: all of their exercises may take.  In part two the ranks train models, and most of it is theirs.
_PARTS = (("part one", "[01]*", 25.0), ("part two", "[23]*", None))

_TURNS = 3

_CHAPTER = "solutions/02_broadcast.py"

#: Those that run nothing: their arguments.
_PLAIN = (["--help"], ["list"], ["hint", "broadcast"], ["progress"])


def _run(arguments: Sequence[str], home: Path) -> tuple[float, float]:
    """Run a command on a terminal; return the seconds to its first line and to its end."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "XDG_STATE_HOME": str(home), "XDG_DATA_HOME": str(home)}
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", *arguments],
        cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=variables,
    )  # fmt: skip
    os.close(theirs)
    first = None
    try:
        while os.read(ours, 1 << 16):
            first = first or time.monotonic() - started
    except OSError:  # the terminal's other end is closed
        pass
    os.close(ours)
    if process.wait() or first is None:
        raise RuntimeError(f"grader {' '.join(arguments)} ended with {process.returncode}")
    return first, time.monotonic() - started


def figures() -> Iterator[Figure]:
    """Yield the times of commands, of a check, and of gradings of one submission."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for arguments in _PLAIN:
            seconds = min(_run(arguments, home)[1] for _ in range(_TURNS))
            yield Figure(f"grader {' '.join(arguments[:1])}", seconds, "s", goal=QUICK)
        found = [_run(["check", _CHAPTER, "broadcast"], home) for _ in range(_TURNS)]
        first, whole = (min(times) for times in zip(*found, strict=True))
        yield Figure("grader check broadcast, first line", first, "s", goal=FIRST_LINE)
        yield Figure("grader check broadcast, verdict", whole, "s", goal=VERDICT)
    source = (ROOT / "solutions" / "04_reduce.py").read_bytes()
    two = Student("two exercises", "right", {"04_reduce.py": source})
    seconds = min(grade([two], 1).wall for _ in range(_TURNS))
    yield Figure("grade of one submission, two exercises", seconds, "s", goal=TWO)
    for part, chapters, goal in _PARTS:
        alone = grade([full("a", chapters)], 1)
        both = grade([full("a", chapters), full("b", chapters)], 1)
        what = f"processor time of all of {part}"
        beside = f"{alone.cpu:.0f} s with the start"
        yield Figure(what, both.cpu - alone.cpu, "s", beside, goal=goal)
