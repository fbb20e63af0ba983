"""Kills gradings and lets them go on: ``make kills``.

A class is graded, and the grading is killed again and again by SIGKILL: the
whole group of processes, or only the one that leads it, with no chance to tidy
up.  The moments are drawn from a seed: while it is starting, after so many more
verdicts, or while its pages are being written.  What comes out in the end must
be what an undisturbed grading with the same secret says, every verdict that was
stored must still be there, and no process may be left.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from grader.classroom.store import Store
from headcount.core.errors import HeadcountError

ROOT = Path(__file__).resolve().parent.parent

#: Seconds between two looks, and after which a grading or its end has failed.
_LOOK, _LONGEST = 0.01, 600

#: What students hand in, in turns: right, wrong, half, stuck, dead, not Python.
_ANSWERS = (
    """
import torch, torch.distributed as dist

def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n
""",
    "def who_am_i():\n    return 0\n\ndef neighbours():\n    return 0, 0\n",
    "import torch.distributed as dist\n\ndef who_am_i():\n    raise NotImplementedError\n\n"
    "def neighbours():\n    rank, n = dist.get_rank(), dist.get_world_size()\n"
    "    return (rank - 1) % n, (rank + 1) % n\n",
    "import torch, torch.distributed as dist\n\ndef neighbours():\n"
    "    dist.recv(torch.ones(1), (dist.get_rank() + 1) % dist.get_world_size())\n",
    "import os\n\ndef who_am_i():\n    os.abort()\n",
    "def neighbours(:\n",
)


@dataclass(frozen=True)
class Moment:
    """When to kill.

    Attributes:
        kind: ``"start"``, ``"verdict"`` or ``"page"``.
        amount: seconds after the start, or verdicts or pages that are new.
        alone: kill only the process that leads the others.
    """

    kind: str
    amount: float
    alone: bool = False

    def __str__(self) -> str:
        if self.kind == "start":
            return f"{self.amount:.1f} s after the start"
        return f"{self.kind} {self.amount:.0f}"


def moments(seed: int) -> Iterator[Moment]:
    """When to kill, without end; the same for the same seed."""
    draw = random.Random(seed)
    # a page is written when everything is judged: what comes after it begins anew
    for kind in itertools.cycle(["verdict", "start", "verdict", "page"]):
        amount = draw.uniform(0, 4) if kind == "start" else draw.randint(1, 2)
        yield Moment(kind, amount, draw.random() < 0.5)


@dataclass
class Story:
    """What happened to a class whose grading was killed.

    Attributes:
        told: a line for every kill.
        kills: how many gradings were killed before they had ended.
        complaints: what should not be so.
    """

    told: list[str]
    kills: int
    complaints: list[str]


def hand_in(folder: Path, students: int) -> None:
    """A class of so many students."""
    for number in range(students):
        home = folder / f"student {number:02d}"
        home.mkdir(parents=True)
        (home / "answers.py").write_text(_ANSWERS[number % len(_ANSWERS)])


def disturb(home: Path, times: int, seed: int, observe: Callable[[str], None] = print) -> Story:
    """Grade the class in ``home / "in"``, and kill that so many times.

    Where a grading ends before its moment comes, the next one is of a fresh
    folder of results.
    """
    story, coming = Story([], 0, []), moments(seed)
    for number in itertools.count():
        if story.kills >= times:
            break
        out = home / f"out {number}"
        kept: set[tuple[str, str]] = set()
        ended = False
        while story.kills < times and not ended:
            ended = _kill(home / "in", out, next(coming), story)
            kept = _keep(kept, out, story)
            observe(story.told[-1])
        _grade(home / "in", out, story)
        _keep(kept, out, story)
        _compare(home / "in", out, story)
        observe(f"{out.name}: compared; {len(story.complaints)} complaints so far")
    return story


def _keep(kept: set[tuple[str, str]], out: Path, story: Story) -> set[tuple[str, str]]:
    """What is stored now: at least what was stored before."""
    found = stored(out)
    lost = sorted(kept - found)
    story.complaints += [f"{out.name}: the verdict on {name} was lost" for name in lost]
    return found


def _compare(source: Path, out: Path, story: Story) -> None:
    """Grade once more without a disturbance, with the same secret, and compare."""
    calm = out.with_name(f"{out.name} undisturbed")
    calm.mkdir()
    shutil.copy(out / "grades.sqlite", calm)
    with Store(calm) as store:
        store.keep_only(set())
    _grade(source, calm, story)
    found, wanted = outcome(out), outcome(calm)
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            story.complaints.append(
                f"{out.name}: {name} should be {wanted.get(name)!r}, but is {found.get(name)!r}"
            )
    left = list(out.rglob("*.part"))
    story.complaints += [f"{path} was left behind" for path in left]


def outcome(out: Path) -> dict[str, Any]:
    """What the results say: the gradebook's text, and every student's object without times."""
    found: dict[str, Any] = {"gradebook.csv": (out / "gradebook.csv").read_text("utf-8")}
    for path in sorted((out / "results").iterdir()):
        report = json.loads(path.read_text("utf-8"))
        for exercise in report["exercises"]:
            del exercise["seconds"]
        found[path.name] = report
    return found


def stored(out: Path) -> set[tuple[str, str]]:
    """Every verdict in the store, by submission and exercise."""
    try:
        with Store(out, readonly=True) as store:
            keys = [entry.key for entry in store.entries()]
            return {(key, name) for key in keys for name in store.verdicts(key)}
    except HeadcountError:  # it is just being made
        return set()


def _start(source: Path, out: Path) -> subprocess.Popen[bytes]:
    grading = [sys.executable, "-m", "grader", "grade", str(source), "--layout", "folders"]
    return subprocess.Popen(
        [*grading, "--out", str(out), "--jobs", "2"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _grade(source: Path, out: Path, story: Story) -> None:
    """Let a grading come to its end."""
    process = _start(source, out)
    _, said = process.communicate(timeout=_LONGEST)
    if process.returncode:
        text = said.decode(errors="replace").strip()
        story.complaints.append(f"{out.name}: ended with status {process.returncode}: {text}")


def _kill(source: Path, out: Path, moment: Moment, story: Story) -> bool:
    """Start a grading and kill it when its moment has come; whether it ended before."""
    came = _signs(out, moment)
    process = _start(source, out)
    assert process.stderr is not None
    until = time.monotonic() + _LONGEST
    while process.poll() is None and not next(came):
        if time.monotonic() > until:
            raise TimeoutError(f"a grading is not at {moment} after {_LONGEST} s")
        time.sleep(_LOOK)
    if process.poll() is not None:
        process.stderr.close()
        story.told.append(f"{out.name}: ended before {moment}")
        if process.returncode:
            story.complaints.append(f"{out.name}: ended with status {process.returncode}")
        return True
    everyone = psutil.Process(process.pid).children(recursive=True)
    # what is not killed here, such as a sandbox in a session of its own, goes with its parent
    if moment.alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    _, alive = psutil.wait_procs(everyone, timeout=30)
    story.kills += 1
    whom = "leader" if moment.alone else "group"
    story.told.append(f"{out.name}: {whom} killed at {moment}, with {len(everyone)} others")
    story.complaints += [f"{out.name}: process {one.pid} lives on" for one in alive]
    if moment.kind == "verdict":
        with Store(out, readonly=True) as store:
            rows, wanted = len(store.entries()), len(list(source.iterdir()))
        if rows != wanted:
            story.complaints.append(f"{out.name}: {rows} rows after a kill, not {wanted}")
    return False


def _signs(out: Path, moment: Moment) -> Iterator[bool]:
    """Whether the moment has come, each time it is asked."""
    if moment.kind == "start":
        begun = time.monotonic()
        while True:
            yield time.monotonic() - begun >= moment.amount
    if moment.kind == "verdict":
        before = len(stored(out))
        while True:
            yield len(stored(out)) - before >= moment.amount
    seen = _pages(out)
    while True:
        yield len(_pages(out) - seen) >= moment.amount


def _pages(out: Path) -> set[tuple[str, int]]:
    """The students' files as they are now: one that is replaced is another."""
    return {(path.name, path.stat().st_mtime_ns) for path in out.glob("results/*.json")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill as often as asked; 0 if it made no difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how many kills")
    parser.add_argument("--students", type=int, default=6, help="how large the class is")
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    request = parser.parse_args(arguments)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        hand_in(Path(folder) / "in", request.students)
        story = disturb(Path(folder), request.times, request.seed)
    for complaint in story.complaints:
        print(complaint)
    minutes = (time.monotonic() - started) / 60
    print(f"{story.kills} kills: {len(story.complaints)} complaints, {minutes:.1f} min")
    return 1 if story.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
