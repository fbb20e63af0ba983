"""Grades a class that is made up: what it costs, and whether anyone harms a neighbour.

The class is drawn from a fixed seed: right answers written in many ways, wrong
ones, some that hang, some that crash, files that are garbage, and hostile ones.
A fifth of those that are honest hand in every chapter, the others one to three.
``python -m grader grade`` grades it as an instructor would; then some honest
submissions are graded alone, with the same inputs, and compared.

CPU seconds are the whole machine's, so nothing else should run meanwhile.
Memory is what the processes have of their own plus the largest part that they
share, looked at every second.  Linux only.

Run with ``python -m benchmarks.classroom``; ``--students 20`` is a short look.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.memory import look
from grader.classroom.store import Store
from grader.exercise.verdict import ExerciseVerdict, Status
from headcount.core.verdict import Diagnosis
from tools.attacks import attacks
from tools.course import Answer, answers

ROOT = Path(__file__).resolve().parent.parent

#: Of a hundred students; the others hand in right answers.
SHARES = {"wrong": 15, "hanging": 10, "crashing": 5, "garbage": 5, "hostile": 10}

#: Kinds whose verdicts must not depend on who else is in the class.
HONEST = ("right", "wrong", "hanging")

CRASHES = (
    "import os\n    os._exit(3)",
    "import ctypes\n    ctypes.string_at(0)",
    "raise KeyError(torch.distributed.get_rank())",
    "import sys\n    sys.exit(1)",
    "import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)",
)
LOOPS = (
    "while True:\n        pass",
    "import time\n    time.sleep(10**6)",
    "torch.distributed.recv(torch.empty(1))",
)
GARBAGE = {
    "empty.py": b"",
    "picture.ipynb": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
    "half.ipynb": b'{"cells": [{"cell_type": "code", "source": ["def',
    "deep.py": b"(" * 50_000,
    "essay.docx": b"PK\x03\x04 not really",
    "nulls.py": b"def broadcast(x, src):\n    pass\0\n",
}


@dataclass(frozen=True)
class Student:
    """One of the class.

    ``changed`` are the exercises whose answers are not the solution's.
    """

    name: str
    kind: str
    files: dict[str, bytes] = field(repr=False)
    changed: frozenset[str] = frozenset()
    full: bool = False


@dataclass(frozen=True)
class Run:
    """What one grading took.

    Attributes:
        wall, cpu: seconds, and processor seconds of the whole machine.
        peak: bytes that were held at most; 0 where nobody looked.
        rows: the students' verdicts.
    """

    wall: float
    cpu: float
    peak: int
    rows: dict[str, dict[str, ExerciseVerdict]] = field(repr=False)


class Class:
    """Draws students.

    Args:
        seed: of the draw.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._chapters = {
            path.stem: path.read_text() for path in sorted((ROOT / "solutions").glob("[0-9]*.py"))
        }
        known = answers()
        self._right = [one for one in known if one.known.diagnosis is None]
        # one that speaks begins with code that its chapter shares, which nobody would hand in
        rejected = [one for one in known if one.known.diagnosis and not one.known.speaks]
        stuck = (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT)
        self._hanging = [one for one in rejected if one.known.diagnosis in stuck]
        self._wrong = [one for one in rejected if one.known.diagnosis not in stuck]
        self._hostile = [one for one in attacks() if not one.is_control]

    def draw(self, students: int) -> list[Student]:
        """A class; the same for the same seed."""
        kinds = [kind for kind, share in SHARES.items() for _ in range(students * share // 100)]
        kinds += ["right"] * (students - len(kinds))
        self._random.shuffle(kinds)
        return [self._student(i, kind) for i, kind in enumerate(kinds)]

    def _student(self, i: int, kind: str) -> Student:
        name = f"student {i:03d}"
        if kind == "garbage":
            some = self._random.sample(sorted(GARBAGE), 2)
            return Student(name, kind, {label: GARBAGE[label] for label in some})
        if kind == "hostile":
            return Student(name, kind, {"answer.py": self._random.choice(self._hostile).source})
        full = self._random.random() < 0.2
        handed = dict(self._chapters)
        if not full:
            few = self._random.sample(sorted(handed), self._random.randint(1, 3))
            handed = {chapter: handed[chapter] for chapter in few}
        changed = set()
        for _ in range(3 if kind == "right" else 2):
            chapter = self._random.choice(sorted(handed))
            exercise, text = self._answer(kind, chapter)
            handed[chapter] += f"\n\n{text}"
            changed.add(exercise)
        files = {f"{chapter}.py": text.encode() for chapter, text in handed.items()}
        return Student(name, kind, files, frozenset(changed), full)

    def _answer(self, kind: str, chapter: str) -> tuple[str, str]:
        """An exercise of the chapter, and an answer of that kind to it."""
        if kind == "crashing":
            return self._broken(chapter, CRASHES)
        pool = {"right": self._right, "wrong": self._wrong, "hanging": self._hanging}[kind]
        fitting = [one for one in pool if one.chapter == chapter]
        if not fitting or (kind == "hanging" and self._random.random() < 0.3):
            return self._broken(chapter, LOOPS)
        answer: Answer = self._random.choice(fitting)
        return answer.exercise, answer.source

    def _broken(self, chapter: str, bodies: Sequence[str]) -> tuple[str, str]:
        names = sorted({one.exercise for one in self._right if one.chapter == chapter})
        name = self._random.choice(names)
        return name, f"import torch\n\ndef {name}(*arguments):\n    {self._random.choice(bodies)}\n"


def full(name: str, chapters: str = "[0-9]*") -> Student:
    """One who hands in the solution of every chapter, or of those that match a pattern."""
    handed = sorted((ROOT / "solutions").glob(f"{chapters}.py"))
    return Student(name, "right", {path.name: path.read_bytes() for path in handed}, full=True)


def grade(
    students: Sequence[Student],
    jobs: int | None = None,
    scheduler: str | None = None,
    memory: bool = False,
) -> Run:
    """Grade a class on the command line, on this machine or by a Dask scheduler at an address.

    With ``memory``, it looks every second at what all processes hold, which takes processor time
    itself: more than a second of the thirty that a full submission needs.
    """
    with tempfile.TemporaryDirectory() as folder:
        for student in students:
            home = Path(folder, "in", student.name)
            home.mkdir(parents=True)
            for label, data in student.files.items():
                (home / label).write_bytes(data)
        out = Path(folder, "out")
        command = [sys.executable, "-m", "grader", "grade", f"{folder}/in", "--out", str(out)]
        command += [
            "--layout",
            "folders",
            "--seed",
            str(1 << 64),
            "--json",
            *(["--jobs", str(jobs)] if jobs else []),
        ]
        command += ["--engine", "dask", "--scheduler", scheduler] if scheduler else []
        before, started = used(), time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        peak = Peak(process.pid) if memory else None
        if process.wait() not in (0, 1):
            raise SystemExit(f"grading failed: exit status {process.returncode}")
        wall, cpu = time.monotonic() - started, used() - before
        with Store(out, readonly=True) as store:
            rows = {entry.student: store.verdicts(entry.key) for entry in store.entries()}
        return Run(wall, cpu, peak.stop() if peak is not None else 0, rows)


def used() -> float:
    """CPU seconds of this machine so far.

    Adding up processes would miss some: bubblewrap ends without waiting for what
    it has started.
    """
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


class Peak(threading.Thread):
    """Looks at the memory of a process and all that it started."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._most = 0
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """Look every second."""
        while not self._over.wait(1):
            try:
                seen = look(self._pid)
            except (psutil.Error, OSError, ValueError):  # it is ending
                continue
            self._most = max(self._most, seen.own + seen.files)

    def stop(self) -> int:
        """The most that was seen, in bytes."""
        self._over.set()
        self.join()
        return self._most


def bare(verdict: ExerciseVerdict) -> ExerciseVerdict:
    """What must be the same in every run: all but times, texts and what ranks printed.

    How far the other ranks have come when one is found to be wrong is chance, too.
    """
    cases = tuple(
        replace(
            case,
            traffic=case.traffic if case.passed else None,
            output=(), waits=(), message="", detail=(), ended=(),
        )
        for case in verdict.cases
    )  # fmt: skip
    return replace(verdict, seconds=0.0, message="", hint="", cases=cases)


def lost(students: Sequence[Student], run: Run) -> list[float]:
    """Seconds that each exercise that hung took beyond a right answer to it."""
    usual: dict[str, list[float]] = {}
    for row in run.rows.values():
        for name, verdict in row.items():
            if verdict.passed:
                usual.setdefault(name, []).append(verdict.seconds)
    return [
        verdict.seconds - statistics.median(usual.get(name, [0.0]))
        for student in students
        if student.kind == "hanging"
        for name, verdict in run.rows[student.name].items()
        if name in student.changed and verdict.diagnosis in (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the class, grade it, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--alone", type=int, default=10, help="honest ones to grade alone")
    parser.add_argument("--full", type=int, default=4, help="full submissions to weigh")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--json", action="store_true")
    request = parser.parse_args(arguments)

    students = Class(request.seed).draw(request.students)
    run = grade(students, memory=True)
    verdicts = [verdict for row in run.rows.values() for verdict in row.values()]
    hung = lost(students, run)
    honest = [student for student in students if student.kind in HONEST]
    alone = random.Random(request.seed).sample(honest, min(request.alone, len(honest)))
    differing = [
        f"{student.name}: {name}"
        for student in alone
        for name, verdict in grade([student], 1).rows[student.name].items()
        if bare(verdict) != bare(run.rows[student.name][name])
    ]
    short = [
        f"{student.name}: {name} ({verdict.message})"
        for student in students
        if student.kind == "right"
        for name, verdict in run.rows[student.name].items()
        if not verdict.passed
    ]
    weighed = 0.0
    if request.full:
        one = grade([full("a")], 1).cpu
        more = grade([full(f"{i}") for i in range(request.full + 1)], 1).cpu
        weighed = (more - one) / request.full
    found = {
        "students": dict(Counter(student.kind for student in students)),
        "rows": len(run.rows),
        "verdicts": len(verdicts),
        "grader's faults": sum(verdict.status is Status.ERROR for verdict in verdicts),
        "wall seconds": round(run.wall, 1),
        "submissions a minute": round(60 * len(students) / run.wall, 1),
        "CPU seconds of all": round(run.cpu, 1),
        "CPU seconds of a full submission": round(weighed, 2),
        "most memory, MB": run.peak >> 20,
        "exercises that hung": len(hung),
        "seconds lost to one, median": round(statistics.median(hung or [0]), 2),
        "seconds lost to one, most": round(max(hung or [0]), 2),
        "graded alone": len(alone),
        "differing from that": differing,
        "right answers that failed": short,
    }
    if request.json:
        print(json.dumps(found, indent=1))
    else:
        table = Table(show_header=False)
        for name, value in found.items():
            table.add_row(name, str(value))
        Console().print(table)
    return 1 if differing or short or len(run.rows) != len(students) else 0


if __name__ == "__main__":
    sys.exit(main())
