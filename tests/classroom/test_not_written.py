"""An answer that is there is never called unwritten: what is found is judged, or named."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox.sandboxes import missing

ROOT = Path(__file__).resolve().parents[2]

NAME = "transformer_block_params"
RIGHT = f"def {NAME}(hidden, glu):\n    return (16 if glu else 12) * hidden * hidden\n"
STUB = f"def {NAME}(hidden, glu):\n    raise NotImplementedError\n"
#: It runs in TorchScript, whose integers have 64 bits: what Jupyter's would return is judged.
SCRIPTED = f"""import torch


@torch.jit.script
def block(hidden: int, glu: bool) -> int:
    return (16 if glu else 12) * hidden * hidden


def {NAME}(hidden, glu):
    return block(1, glu) * hidden * hidden
"""


def notebook(*cells):
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": [{"cell_type": kind, "metadata": {}, "source": text} for kind, text in cells],
        }
    )


#: What was handed in; in what becomes of it, the points and what is said.
HANDED_IN = {
    "above": (notebook(("code", RIGHT), ("code", STUB)), 1, "the untouched stub, cell 2, line 1,"),
    "text": (
        notebook(("code", STUB), ("markdown", f"```python\n{RIGHT}```")),
        0,
        "an answer stands in a markdown cell after cell 1, line 2; make that a code cell",
    ),
    "raw": (notebook(("raw", RIGHT)), 0, "an answer stands in a raw cell at the start"),
    "module": (
        notebook(("code", f"%%writefile sol.py\n{RIGHT}"), ("code", "from sol import *")), 1, "",
    ),
    "scripted": (notebook(("code", SCRIPTED)), 1, ""),
    "untouched": (notebook(("code", STUB)), 0, "not written yet"),
}  # fmt: skip


def grader(*arguments, folder):
    command = [sys.executable, "-m", "grader", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_class_whose_answers_stand_in_odd_places(tmp_path):
    for student, (text, _, _) in HANDED_IN.items():
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / "hw.ipynb").write_text(text)
    (tmp_path / "in" / "raw" / "16_scale_math.pdf").write_bytes(b"%PDF-1.7")
    options = ("--layout", "folders", "--out", "out", "--exercises", NAME)
    done = grader("grade", "in", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "gradebook.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = {row["student"]: row for row in csv.DictReader(stream)}
    for student, (_, points, said) in HANDED_IN.items():
        row = rows[student]
        page = tmp_path / "out" / "feedback" / f"{row['key']}.html"
        assert row[NAME] == str(points), (student, row)
        assert said in page.read_text(), student
        assert said in row["notes"] or "written" in said, row
    assert "no .py or .ipynb file, and not graded: 16_scale_math.pdf" in rows["raw"]["notes"]


@pytest.mark.parametrize("student", HANDED_IN)
def test_a_file_whose_answer_stands_in_an_odd_place(student, tmp_path):
    text, points, said = HANDED_IN[student]
    (tmp_path / "hw.ipynb").write_text(text)
    done = grader("check", "hw.ipynb", NAME, "--json", folder=tmp_path)
    (verdict,) = json.loads(done.stdout)["exercises"]
    assert verdict["score"] == points
    assert said in verdict["message"]
    expected = {"text": "missing", "raw": "missing", "untouched": "not_attempted"}.get(student)
    assert verdict["diagnosis"] == expected
