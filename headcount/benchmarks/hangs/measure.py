"""What headcount says of a program, beside what it should say."""

from __future__ import annotations

import contextlib
import io
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

import headcount
from benchmarks.hangs.declare import Program
from headcount.core.verdict import Failure

__all__ = ["GOALS", "Score", "Verdict", "judge", "loaded", "score"]

#: What the benchmark asks of headcount.
GOALS = {"recall": 1.0, "precision": 1.0, "word": 0.98, "line": 0.98}

#: Seconds that one verdict may take.
SECONDS = 0.5

_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True)
class Verdict:
    """What headcount said of one program.

    Attributes:
        program: which one.
        word: the diagnosis; ``wrong_value`` if a right program returned what it should
            not, empty if nothing was found.
        line: the line that the verdict puts first.
        lines: every line that it names.
        message: what it says.
        seconds: from the call of ``headcount.run`` to the verdict.
    """

    program: Program
    word: str
    line: int | None
    lines: frozenset[int]
    message: str
    seconds: float

    @property
    def found(self) -> bool:
        """Whether something was found."""
        return bool(self.word)

    @property
    def right_word(self) -> bool:
        """Whether it is the word that was expected."""
        return self.word == str(self.program.word or "")

    @property
    def right_line(self) -> bool:
        """Whether the line that it puts first is a marked one."""
        return self.line in self.program.lines

    @property
    def says(self) -> tuple[str, int | None]:
        """What must be the same every time."""
        return self.word, self.line

    @property
    def misses(self) -> list[str]:
        """What it should have said and did not, in words."""
        if self.program.word is None:
            return [f"a false alarm: {self.word}"] if self.found else []
        if not self.found:
            return [f"nothing found, expected {self.program.word}"]
        found = []
        if not self.right_word:
            found.append(f"says {self.word}, expected {self.program.word}")
        if not self.right_line:
            marked = " or ".join(map(str, self.program.lines))
            found.append(f"names line {self.line} first, expected {marked}")
        return found

    @property
    def slow(self) -> bool:
        """Whether it took longer than a verdict may."""
        return self.seconds > SECONDS


def judge(program: Program) -> Verdict:
    """Run a program on its ranks, as ``headcount.run`` does for anybody."""
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        done = headcount.run(program.function, program.ranks, may_fail=True)
    seconds = time.perf_counter() - started
    failure = done.failure
    if failure is None:
        word, message = _unexpected(program, list(done))
        return Verdict(program, word, None, frozenset(), message, seconds)
    site = failure.site
    line = site.line if site is not None and site.file == program.file else None
    return Verdict(program, str(failure.diagnosis), line, _lines(failure), failure.message, seconds)


def _unexpected(program: Program, results: Sequence[Any]) -> tuple[str, str]:
    if program.word is not None or results == list(program.gives):
        return "", ""
    return "wrong_value", f"returns {results}, expected {list(program.gives)}"


def _lines(failure: Failure) -> frozenset[int]:
    text = "\n".join([failure.message, *failure.detail])
    return frozenset(map(int, _LINE.findall(text)))


@dataclass(frozen=True)
class Score:
    """How well a set of programs was judged.

    Attributes:
        wrong: how many wrong programs there are, and as many right ones.
        recall: the share of wrong programs in which something was found.
        precision: the share of wrong programs among those in which something was found.
        word: the share of wrong programs with the expected diagnosis.
        line: the share of wrong programs of which a marked line is named first.
        every_line: the share of wrong programs of which every marked line is named.
        median, longest: seconds a verdict.
    """

    wrong: int
    recall: float
    precision: float
    word: float
    line: float
    every_line: float
    median: float
    longest: float

    @property
    def missed_goals(self) -> list[str]:
        """The goals that are not met, in words."""
        missed = [
            f"{name} {getattr(self, name):.3f} < {goal:g}"
            for name, goal in GOALS.items()
            if getattr(self, name) < goal
        ]
        if self.longest > SECONDS:
            missed.append(f"longest verdict {self.longest:.2f} s > {SECONDS:g} s")
        return missed


def score(verdicts: Iterable[Verdict]) -> Score:
    """Sum up the verdicts on wrong programs and their right twins."""
    verdicts = list(verdicts)
    wrong = [v for v in verdicts if v.program.word is not None]
    true = [v for v in wrong if v.found]
    false = [v for v in verdicts if v.program.word is None and v.found]
    seconds = [v.seconds for v in verdicts]
    return Score(
        wrong=len({v.program.name for v in wrong}),
        recall=len(true) / len(wrong),
        precision=len(true) / max(1, len(true) + len(false)),
        word=sum(v.found and v.right_word for v in wrong) / len(wrong),
        line=sum(v.right_line for v in wrong) / len(wrong),
        every_line=sum(set(v.program.lines) <= v.lines for v in wrong) / len(wrong),
        median=statistics.median(seconds),
        longest=max(seconds),
    )


@contextlib.contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep as many processors busy meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def processors() -> int:
    """Return how many processors this process may use."""
    return (
        len(psutil.Process().cpu_affinity())
        if hasattr(psutil.Process, "cpu_affinity")
        else (psutil.cpu_count() or 1)
    )
