"""What students hand in: seven right answers, written differently, and three wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from tools.course import answers

ROOT = Path(__file__).resolve().parent.parent.parent

EXERCISES = ("broadcast", "ring_all_gather", "ring_all_reduce")
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
IMPORTS = "import torch\nimport torch.distributed as dist"

#: What is wrong in the three submissions that are not right: the exercise, and its answer.
WRONG = {
    "deadlock": (
        "ring_all_gather",
        """\
def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        dist.send(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
    return parts""",
    ),
    "wrong value": (
        "ring_all_reduce",
        """\
def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    passed_on = x.clone()
    for _ in range(n - 2):  # one step too few
        came = torch.empty_like(x)
        sending = dist.isend(passed_on, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        sending.wait()
        x.copy_(torch.maximum(x, came) if op == dist.ReduceOp.MAX else x + came)
        passed_on = came""",
    ),
    "exception": (
        "broadcast",
        """\
def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(1, dist.get_world_size() + 1):
            dist.send(x, dst)
    else:
        dist.recv(x, src)""",
    ),
}


@dataclass(frozen=True)
class Submission:
    """What a student hands in: an answer to every exercise."""

    name: str
    kind: str
    answers: Mapping[str, str]


def submissions(count: int) -> list[Submission]:
    """The class; the three that are wrong come early, so that a short run has them."""
    right: dict[str, list[str]] = {}
    known = [one for one in answers() if one.known.diagnosis is None]
    for name in EXERCISES:
        texts = [one.source for one in known if one.exercise == name]
        # an answer that brings another exercise of ours along would be judged on that, too
        right[name] = [text for text in texts if "ring_schedule" not in text]
    kinds = ["right", *WRONG, *["right"] * 6]
    found = []
    for i, kind in enumerate(kinds[:count]):
        handed = {name: texts[i % len(texts)] for name, texts in right.items()}
        if kind in WRONG:
            name, text = WRONG[kind]
            handed[name] = text
        found.append(Submission(f"student{i}", kind, handed))
    return found


def notebook(answers: Mapping[str, str], tests: bool = False) -> Any:
    """A notebook with answers; for nbgrader, with its hidden tests and the marks of its cells."""
    made = nbformat.v4.new_notebook(metadata=KERNEL)
    made.cells.append(nbformat.v4.new_code_cell(IMPORTS, id="imports"))
    for name, text in answers.items():
        cell = nbformat.v4.new_code_cell(text, id=name)
        marks = {"schema_version": 3, "task": False, "grade": False, "locked": False}
        cell.metadata["nbgrader"] = {**marks, "solution": True, "grade_id": f"{name}-answer"}
        made.cells.append(cell)
        if tests:
            hidden = f"from spawned import examine\n\nexamine({name})"
            text = f"### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
            cell = nbformat.v4.new_code_cell(text, id=f"{name}-test")
            marks = {**marks, "grade": True, "locked": True, "points": 1.0}
            cell.metadata["nbgrader"] = {**marks, "solution": False, "grade_id": name}
            made.cells.append(cell)
    return made


def stubs() -> dict[str, str]:
    """The answers of a released notebook."""
    return {
        name: f"### BEGIN SOLUTION\ndef {name}(*arguments): ...\n### END SOLUTION"
        for name in EXERCISES
    }
