"""``python -m grader tasks`` and ``score``: the course as tasks for programs that answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.api import catalogue
from grader.classroom.messages import Limits
from grader.classroom.tasks import (
    AnswerScore,
    TaskAnswer,
    chapter_until,
    pass_at,
    read_answers,
    score_answers,
    scores_as_dict,
)
from grader.cli.main import main
from grader.course.index import course_index
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.sandbox.sandboxes import missing
from headcount.core.errors import RequestError
from headcount.core.verdict import Diagnosis
from tools.attacks import attacks

ROOT = Path(__file__).resolve().parents[2]

#: As long as a seed has to be in a sandbox.
SEED = 1 << 64


def test_every_exercise_is_a_task_with_its_statement(capsys):
    assert main(["tasks", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    index = course_index()
    assert [(task["task"], task["points"], task["stub"]) for task in tasks] == [
        (entry.name, entry.points, entry.stub) for entry in index.values()
    ]
    for task in tasks:
        assert task["statement"].startswith("## "), task["task"]
        assert task["context"].startswith("# "), task["task"]
        assert task["stub"] not in task["statement"]
        assert "BEGIN SOLUTION" not in task["context"] + task["statement"]
    (broadcast,) = [task for task in tasks if task["task"] == "broadcast"]
    assert "Write it with point-to-point calls" in broadcast["statement"]
    assert broadcast["allowed"] == []
    assert broadcast["traffic"] == [
        {"quantity": "messages", "relation": "=", "point": False},
        {"quantity": "bytes in all", "relation": "=", "point": False},
    ]


def test_the_page_has_every_field_and_its_numbers_are_true(capsys):
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert main(["tasks", "broadcast", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    fields = page.partition("## Tasks")[2].partition("\n\n`python -m grader tasks")[0]
    described = [
        re.findall(r"`(\w+)`", row.split("|")[1]) for row in fields.splitlines() if "|" in row
    ]
    assert sorted(name for names in described for name in names) == sorted(task)
    kinds = Counter(fixture.path.name.startswith("control_") for fixture in attacks())
    assert "more than 150 attacks" in page
    assert kinds[False] > 150
    assert kinds[True]
    assert f"all {len(course_index())} solutions" in page


def test_a_task_is_shown_as_markdown(capsys):
    assert main(["tasks", "broadcast"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("## Exercise: broadcast\n")
    assert said.endswith("check(broadcast)\n```\n\n")


def test_a_notebook_that_is_not_there_or_has_been_changed_is_named(tmp_path):
    entry = course_index()["broadcast"]
    with pytest.raises(RequestError, match=r"02_broadcast\.ipynb does not exist"):
        chapter_until(entry, tmp_path)
    (tmp_path / "02_broadcast.ipynb").write_text('{"cells": []}')
    with pytest.raises(RequestError, match="has no cell for broadcast any more: fetch"):
        chapter_until(entry, tmp_path)


def line(task="broadcast", answer="", **fields):
    return json.dumps({"task": task, "answer": answer, **fields})


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "has no line with an answer"),
        (["nope"], r"line 1 is no JSON: Expecting value"),
        (['{"task": "broadcast"}'], "line 1 should be an object like"),
        ([line(sample=[1])], "line 1 should be an object like"),
        ([line(), line("brodcast")], "line 2: there is no exercise named 'brodcast'; did you mean"),
        ([line(sample=3), line(sample=3)], "line 2 answers broadcast with sample 3, as does .* 1:"),
    ],
)
def test_a_file_of_answers_that_is_wrong_is_refused_with_its_line(lines, says, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(RequestError, match=says):
        read_answers(path, course_index())


def test_a_folder_has_one_answer_to_a_task(tmp_path):
    with pytest.raises(RequestError, match=r"has no \.py file"):
        read_answers(tmp_path, course_index())
    for name in ("scatter", "broadcast"):
        (tmp_path / f"{name}.py").write_text(name)
    (tmp_path / "README.md").write_text("no answer")
    found = read_answers(tmp_path, course_index())
    assert found == [TaskAnswer("broadcast", b"broadcast"), TaskAnswer("scatter", b"scatter")]
    with pytest.raises(RequestError, match="neither a folder"):
        read_answers(tmp_path / "README.md", course_index())


def test_what_is_no_answer_in_a_folder_costs_itself_alone(tmp_path):
    (tmp_path / "secret").write_text("def scatter(): ...")
    (tmp_path / "scatter.py").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "gather.py")
    (tmp_path / "shift.py").mkdir()
    (tmp_path / "barrier.py").write_bytes(b"")
    os.truncate(tmp_path / "barrier.py", 1 << 40)
    for name in ("broadcast", "brodcast", "\x1b[31m"):
        (tmp_path / f"{name}.py").write_text(name)
    left_out = []
    found = read_answers(tmp_path, course_index(), left_out.append)
    assert {one.task: one.text or one.unread for one in found} == {
        "broadcast": b"broadcast",
        "scatter": "scatter.py cannot be read: Too many levels of symbolic links",
        "gather": "gather.py cannot be read: it is no regular file",
        "shift": "shift.py cannot be read: it is no regular file",
        "barrier": "barrier.py is larger than 32 MB",
    }
    assert left_out[0].startswith(f"{tmp_path}/\\x1b[31m.py: there is no exercise named")
    assert left_out[1].endswith("did you mean broadcast? It is left out.")


def test_an_answer_that_is_not_read_earns_nothing_and_is_not_judged():
    answer = TaskAnswer("broadcast", b"", unread="broadcast.py is a FIFO")
    engine = SimpleNamespace(run=lambda requests: list(requests))
    (score,) = score_answers([answer], engine, catalogue(), SEED, Limits())
    assert (score.reward, score.verdict.diagnosis) == (0, Diagnosis.MISSING)
    assert score.verdict.message == answer.unread


def test_pass_at_k():
    assert pass_at(1, 4, 1) == pytest.approx(1 / 4)
    assert pass_at(2, 4, 1) == pytest.approx(1 / 2)  # 3 of the 6 pairs have it
    assert pass_at(4, 4, 1) == 1
    assert pass_at(3, 4, 0) == 0


def scored(task, sample, status, score=0.0, of=1.0):
    verdict = ExerciseVerdict(task, "00_ranks_and_groups", status, score, of)
    return AnswerScore(TaskAnswer(task, b"", sample), verdict)


def test_what_could_not_be_judged_has_no_reward_and_counts_nowhere():
    found = scores_as_dict(
        [
            scored("who_am_i", 0, Status.PASSED, 2.0, 2.0),
            scored("who_am_i", 1, Status.FAILED, 0.5, 2.0),
            scored("neighbours", 0, Status.FAILED),
            scored("neighbours", 1, Status.ERROR),
            scored("shift", 0, Status.SKIPPED),
        ],
        seed=1,
        sandbox=True,
    )
    assert [one["reward"] for one in found["answers"]] == [1, 0.25, 0, None, None]
    assert found["summary"] == {
        "tasks": 3,
        "answers": 5,
        "judged": 3,
        "passed": 1,
        "mean_reward": 0.3125,  # of two tasks, whose means are 0.625 and 0
        "pass_at": {"1": 0.25},  # not of 2, since one task has a single answer
    }
    assert found["tasks"][2] == {
        "task": "shift",
        "chapter": "00_ranks_and_groups",
        "answers": 1,
        "judged": 0,
        "passed": 0,
        "mean_reward": None,
        "best_reward": None,
    }


HEAD = "import os\nimport torch\nimport torch.distributed as dist\n\n"
WHO = "def who_am_i():\n    return torch.tensor([dist.get_rank(), dist.get_world_size()])\n"
RIGHT = (
    "def neighbours():\n    rank, n = dist.get_rank(), dist.get_world_size()\n"
    "    return (rank - 1) % n, (rank + 1) % n\n"
)
WRONG = RIGHT.replace("- 1", "+ 1")  # right on two ranks alone

#: By sample: the answer, its status, and its diagnosis.
ANSWERS = {
    "right": (RIGHT, "passed", None),
    "wrong": (WRONG, "failed", "wrong_value"),
    "wrong again": (WRONG, "failed", "wrong_value"),
    "of another task": (WHO, "failed", "missing"),
    "stub": ("def neighbours():\n    raise NotImplementedError\n", "failed", "not_attempted"),
    "loop": ("def neighbours():\n    while True: pass\n", "failed", "timeout"),
    "exit": ("def neighbours():\n    os._exit(0)\n", "failed", "exited"),
    "flood": ("def neighbours():\n    print('x' * 10**7)\n", "failed", "output_limit"),
    "no Python": ("def neighbours(:\n", "failed", "syntax_error"),
    "no text": ("\ud800", "failed", "missing"),
}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_answers_are_scored_whatever_they_do(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(
        "\n".join(
            [
                *(
                    line("neighbours", HEAD + text, sample=sample)
                    for sample, (text, *_) in ANSWERS.items()
                ),
                line("who_am_i", HEAD + WHO + RIGHT),  # is judged on its own task alone
            ]
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "grader", "score", str(path), "--seed", str(SEED), "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["seed"], found["sandbox"]) == (SEED, True)
    first, *answers = found["answers"]
    assert (first["task"], first["sample"], first["reward"]) == ("who_am_i", 0, 1)
    assert {one["sample"]: [one["status"], one["diagnosis"]] for one in answers} == {
        sample: expected for sample, (_, *expected) in ANSWERS.items()
    }
    rewards = {one["sample"]: one["reward"] for one in answers}
    assert rewards["right"] == 1
    assert 0 < rewards["wrong"] < 1
    assert {sample for sample, reward in rewards.items() if reward} == {
        "right",
        "wrong",
        "wrong again",
    }
    by_sample = {one["sample"]: one for one in answers}
    for field in ("reward", "message", "hint"):  # the same inputs
        assert by_sample["wrong"][field] == by_sample["wrong again"][field]
    assert "UTF-8" in by_sample["no text"]["message"]
    assert found["summary"]["passed"] == 2
    assert found["summary"]["pass_at"] == {"1": 0.55}
