"""Every exercise with an example to replay: its solution, replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.api.replay import WATCHED
from grader.course.chapters import discover
from grader.report.divergence import compared
from grader.report.replay import packed, unpacked
from grader.report.rounds import film
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from tools.rounds import RECORDED, right_run, sizes

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = discover()
DEMOS = [
    (name, n)
    for name, exercise in CATALOGUE.items()
    for n in (1, 2, 5)
    if exercise.demo is not None and n >= min(exercise.world_sizes)
]


@pytest.mark.parametrize("name, n", DEMOS)
def test_a_solution_is_replayed_from_its_tags(name, n):
    exercise = CATALOGUE[name]
    path = ROOT / "solutions" / f"{exercise.chapter}.py"
    submission = Submission.from_file(path, CATALOGUE)
    case = exercise.demo(n)
    job = Job(
        name,
        tuple(case.arguments(rank) for rank in case.ranks),
        adapter=exercise.packed_adapter(),
        allowed=exercise.traffic.allowed,
        watched=WATCHED,
    )
    with ProcessWorld(default_launcher(), n, submission.program) as world:
        outcome = world.run(job)
    assert outcome.failure is None
    shown = film(outcome.trace, name, tags=True)
    assert shown.rounds == outcome.trace.traffic.rounds
    arrows = [arrow for frame in shown.frames for arrow in frame.arrows]
    assert len(arrows) == outcome.trace.traffic.messages
    # what is sent is known, unless the data have been made into something else
    unnamed = {"ping_pong", "barrier"}
    assert all(arrow.content.owners for arrow in arrows if name not in unnamed)
    ends = [cell for column in shown.frames[-1].cells for cell in column]
    assert any(cell.owners for cell in ends) or name == "barrier"


@pytest.mark.parametrize("name", [name for name, one in CATALOGUE.items() if one.demo is not None])
def test_the_recorded_run_is_that_of_the_solution(name):
    exercise = CATALOGUE[name]
    text = (RECORDED / f"{name}.json").read_text(encoding="utf-8")
    recorded = json.loads(text)
    assert list(recorded) == [str(size) for size in sizes(exercise)]
    fresh = right_run(exercise, 5)
    assert recorded["5"] == json.loads(json.dumps(packed(fresh)))
    assert compared(fresh, unpacked(recorded["5"])) is None
    # what travels, and no line of the program
    sites = {arrow[4] for run in recorded.values() for f in run["frames"] for arrow in f["arrows"]}
    assert sites <= {""}


def test_nothing_is_recorded_that_is_no_exercise():
    named = {name for name, one in CATALOGUE.items() if one.demo is not None}
    assert {path.stem for path in RECORDED.iterdir()} == named
