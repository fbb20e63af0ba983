"""Record a right run of every exercise that can be replayed, for students to compare with.

It writes ``grader/course/recorded/<exercise>.json``: what the taught solution sends and what ranks
hold, round by round, on 2 to 8 ranks, and none of its code.  Run it as
``python -m tools.rounds`` after a change of a solution or of an exercise's ``demo``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grader.api.replay import WATCHED
from grader.course.chapters import discover
from grader.exercise.declaration import Exercise
from grader.report.replay import packed
from grader.report.rounds import FrameSequence, film
from grader.submission.submission import Submission
from headcount.core.values import FEW_RANKS
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job

ROOT = Path(__file__).resolve().parent.parent

#: Where the runs are stored.
RECORDED = ROOT / "grader" / "course" / "recorded"


def right_run(exercise: Exercise, size: int) -> FrameSequence:
    """Return the rounds of the taught solution.

    Raises:
        RuntimeError: the solution fails.
    """
    assert exercise.demo is not None
    case = exercise.demo(size)
    path = ROOT / "solutions" / f"{exercise.chapter}.py"
    program = Submission.from_file(path, discover()).program
    job = Job(
        exercise.name,
        tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.traffic.allowed,
        watched=WATCHED,
    )
    with ProcessWorld(default_launcher(), size, program) as world:
        outcome = world.run(job)
    if outcome.failure is not None:
        raise RuntimeError(f"{exercise.name} on {size} ranks: {outcome.failure.message}")
    return film(outcome.trace, exercise.name, True, list(case.columns), case.roots())


def sizes(exercise: Exercise) -> Iterator[int]:
    """Yield the numbers of ranks on which an exercise is recorded."""
    yield from range(max(2, min(exercise.world_sizes)), FEW_RANKS + 1)


def main() -> int:
    """Write all files."""
    RECORDED.mkdir(exist_ok=True)
    for exercise in discover().values():
        if exercise.demo is None:
            continue
        runs = (
            f'"{size}":'
            + json.dumps(
                packed(right_run(exercise, size)), separators=(",", ":"), ensure_ascii=False
            )
            for size in sizes(exercise)
        )
        # a line for every size
        text = "{\n" + ",\n".join(runs) + "\n}\n"
        (RECORDED / f"{exercise.name}.json").write_text(text, encoding="utf-8")
        print(exercise.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
