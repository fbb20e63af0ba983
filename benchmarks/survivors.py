"""Kills ranks at random moments, and judges the survivors: ``python -m benchmarks.survivors``.

Every seed draws a world size, a rank, the step at which it dies, and one of the answers to
``sum_of_survivors`` that are known to be right; every other seed draws a rank that is late, too.  A
verdict other than a pass is wrong, and so is a process that is left when the world is closed.  It
is no part of ``make test``: it takes minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import psutil

from grader.course.answers import FOLDER
from grader.course.chapters import discover
from grader.exercise.answers import RIGHT
from grader.exercise.cases import Draw
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import CaseVerdict
from grader.judge.assessment import assess
from grader.submission.submission import Submission
from headcount.core.wire import AT_RETURN
from headcount.launch.launchers import ForkServer, default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Delay, Job, Kill

ANSWERS = FOLDER / "22_failures" / RIGHT

SIZES = (3, 4, 5, 8)

#: The last step that is drawn, beside the return; a right answer makes fewer on most ranks.
STEPS = 14


def killed_once(
    exercise: Exercise, answer: Submission, seed: int
) -> tuple[CaseVerdict, float, Kill]:
    """Judge one run with one death; return the verdict, its wall-clock seconds, and the death."""
    chance = random.Random(seed)
    size = chance.choice(SIZES)
    kill = Kill(chance.randrange(size), chance.choice([*range(STEPS), AT_RETURN]))
    plain = next(iter(exercise.inputs(Draw(seed, exercise.name, size))))
    late = None
    if seed % 2:
        other = (kill.rank + chance.randrange(1, size)) % size
        late = Delay(other, chance.uniform(0.0, 2.0) * plain.seconds)
    case = replace(plain, name=str(kill), killed=kill, late=late)
    job = Job(
        exercise.name,
        tuple(case.arguments(rank) for rank in case.ranks),
        allowed=exercise.traffic.allowed,
        killed=kill,
        late=late,
    )
    launcher = default_launcher()
    began = time.monotonic()
    with ProcessWorld(launcher, size, answer.program) as world:
        outcome = world.run(job)
    verdict, _ = assess(exercise, case, outcome)
    return verdict, time.monotonic() - began, kill


def left_behind() -> int:
    """Return the number of processes that the fork server still has, once all worlds are closed."""
    launcher = default_launcher()
    if not isinstance(launcher, ForkServer):
        return 0
    return len(psutil.Process(launcher.pid).children(recursive=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; the exit status is the number of seeds that went wrong, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    request = parser.parse_args(arguments)
    exercise = discover()["sum_of_survivors"]
    paths = sorted(ANSWERS.glob("sum_of_survivors_*.py"))
    answers = [Submission.from_bytes(path.read_bytes(), path.name) for path in paths]
    wrong, left, took = 0, 0, []
    for seed in range(request.first, request.first + request.seeds):
        path = paths[seed % len(paths)]
        verdict, seconds, kill = killed_once(exercise, answers[seed % len(paths)], seed)
        took.append(seconds)
        behind = left_behind()
        left += behind
        if not verdict.passed or behind:
            wrong += 1
            print(
                f"seed {seed}, {path.name}, {verdict.world_size} ranks, {kill}:"
                f" {verdict.message}, {behind} processes left",
                flush=True,
            )
    took.sort()
    print(
        f"{request.seeds} deaths, {wrong} wrong, {left} processes left;"
        f" {took[len(took) // 2]:.2f} s in the middle, {took[-1]:.2f} s at most"
    )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
