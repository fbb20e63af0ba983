"""Results for Gradescope, and the autograder's zip.

The schema below says what https://gradescope-autograders.readthedocs.io/en/latest/specs/
describes: "Output format" and the sections after it.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest

from grader.classroom.exports import FORMATS
from grader.classroom.gradescope import VISIBILITIES, autograder, gradescope, to_json
from tests.classes import HOSTILE, SEED, hostile_class, small_class

_VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
_FORMAT = {"enum": ["text", "simple_format", "html", "md", "ansi"]}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": _FORMAT,
        "test_output_format": _FORMAT,
        "test_name_format": _FORMAT,
        "visibility": _VISIBILITY,
        "stdout_visibility": _VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "name_format": _FORMAT,
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "output_format": _FORMAT,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": _VISIBILITY,
                    "extra_data": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
        "leaderboard": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": ["number", "string"]},
                    "order": {"enum": ["asc", "desc"]},
                },
                "required": ["name", "value"],
                "additionalProperties": False,
            },
        },
    },
    # "optional, but required if not on each test case", and the other way round
    "anyOf": [{"required": ["score"]}, {"required": ["tests"]}],
    "additionalProperties": False,
}


def result(key, results=None):
    results = results or small_class()
    row = next(row for row in results.rows if row.key == key)
    read_back = json.loads(to_json(gradescope(results, row)).encode())
    jsonschema.validate(read_back, SCHEMA, jsonschema.Draft202012Validator)
    return read_back


@pytest.mark.parametrize("key", [row.key for row in small_class().rows])
def test_every_kind_of_row_has_the_documented_form(key):
    assert [test["name"] for test in result(key)["tests"]] == ["broadcast", "exchange", "barrier"]


def test_scores_and_states_of_tests():
    found = result("bob")
    first, second, third = found["tests"]
    assert (first["score"], first["max_score"], first["status"]) == (0.25, 1.0, "failed")
    assert (second["number"], second["status"], second["score"]) == ("01.1", "failed", 0.0)
    assert "deadlock" in second["output"]
    assert "score" not in third
    assert "needs a GPU" in third["output"]
    # 0.25 of the 3 points that could be judged, of 4 points that Gradescope counts
    assert found["score"] == 0.333
    assert "not counted: barrier. The score is in proportion" in found["output"]
    assert found["stdout_visibility"] == "hidden"
    assert "bob.ipynb: cell 3 does not parse" in found["output"]
    assert {test["status"] for test in result("ada")["tests"]} == {"passed"}


def test_what_is_not_handed_in_earns_nothing():
    found = result("eve")
    assert found["score"] == 0
    assert [test["output"] for test in found["tests"]] == ["not handed in"] * 3


def test_a_fault_of_the_graders_is_never_0_points_in_silence():
    error = result("cyd")["tests"][2]
    assert "score" not in error
    assert "status" not in error
    assert "no fault of yours" in result("cyd")["output"]
    made = FORMATS["gradescope"].make(small_class(), None)
    # a file would have to say how many points they earned
    names = {row.key: row.student for row in small_class().rows}
    left_out = [remark.partition(":")[0] for remark in made.remarks]
    assert left_out == [f"no results for {names[key]}" for key in ("cyd", "dee")]
    graded = [f"{key}/results.json" for key in ("ada", "bob", "eve", "fay")]
    assert sorted(made.folder) == [graded[0], "autograder.zip", *graded[1:]]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_a_stranger_wrote_is_plain_text(number):
    found = result(f"h{number}", hostile_class())
    assert str(SEED) not in json.dumps(found)
    texts = [found["output"], *(test["output"] for test in found["tests"])]
    for text in texts:
        assert all(c.isprintable() or c in "\n\t" for c in text)
    formats = {found["output_format"], *(test["output_format"] for test in found["tests"])}
    assert formats == {"text"}


def test_visibility_is_one_that_gradescope_knows():
    results = small_class()
    for visibility in VISIBILITIES:
        jsonschema.validate(gradescope(results, results.rows[0], visibility), SCHEMA)
    with pytest.raises(ValueError, match="after_due_date"):
        gradescope(results, results.rows[0], "later")


# The zip. -----------------------------------------------------------------


#: One worker unpacks the zip.
of_the_zip = pytest.mark.xdist_group("of_the_zip")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The folders of an image of Gradescope's, with the zip unpacked in it."""
    home = tmp_path_factory.mktemp("autograder")
    for name in ("source", "submission", "results"):
        (home / name).mkdir()
    with zipfile.ZipFile(io.BytesIO(autograder())) as archive:
        archive.extractall(home / "source")
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    for name in ("setup.sh", "run_autograder"):
        assert modes[name] & 0o777 == 0o755
        (home / "source" / name).chmod(0o755)  # Python's zipfile drops modes; unzip keeps them
    return home


def run(home, python=sys.executable, **environment):
    return subprocess.run(
        [home / "source" / "run_autograder"],
        capture_output=True,
        text=True,
        cwd=home,
        env={
            **os.environ,
            "AUTOGRADER": str(home),
            "PYTHON": str(python),
            # as if installed from the zip, which takes the network
            "PYTHONPATH": str(home / "source" / "gather-round"),
            **environment,
        },
    )


@of_the_zip
def test_the_zip_has_the_scripts_at_its_root_and_the_grader(unpacked):
    source = unpacked / "source"
    assert {path.name for path in source.iterdir()} == {
        "setup.sh", "run_autograder", "gather-round",
    }  # fmt: skip
    inside = source / "gather-round"
    assert (inside / "pyproject.toml").is_file()
    assert (inside / "requirements.lock").is_file()  # setup.sh installs its versions
    assert (inside / "grader" / "classroom" / "assets" / "page.css").is_file()
    assert not list(inside.rglob("__pycache__"))
    for name in ("setup.sh", "run_autograder"):
        text = (source / name).read_bytes()
        assert text.startswith(b"#!/usr/bin/env bash\n")
        assert b"\r" not in text
        subprocess.run(["bash", "-n", source / name], check=True)


def test_the_same_grader_makes_the_same_zip():
    assert autograder() == autograder()


@of_the_zip
def test_the_graders_modules_come_from_the_zip(unpacked):
    inside = unpacked / "source" / "gather-round"
    code = "import sys; sys.argv = ['-m']; import grader.cli.main; print(grader.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, cwd=unpacked, check=True,
        env={**os.environ, "PYTHONPATH": str(inside)},
    )  # fmt: skip
    assert Path(done.stdout.strip()) == inside / "grader" / "__init__.py"


@of_the_zip
def test_a_grader_that_cannot_run_leaves_no_results(unpacked):
    target = unpacked / "results" / "results.json"
    target.write_text('{"score": 100}')  # forged, or left over
    done = run(unpacked, python="/bin/false")
    assert done.returncode == 1
    assert "run_autograder: the results cannot be exported" in done.stderr
    assert not target.exists()


@of_the_zip
def test_a_request_that_is_wrong_leaves_no_results(unpacked):
    done = run(unpacked, python="python-that-is-not-there")
    assert done.returncode == 1
    assert "the grader ended with status 127" in done.stderr
    assert not (unpacked / "results" / "results.json").exists()


@of_the_zip
def test_a_submission_is_graded_by_the_zip(unpacked):
    submission = unpacked / "submission"
    answers = Path(__file__).parents[2] / "grader/course/answers/02_broadcast/right"
    right = min(path for path in answers.glob("*.py") if "def broadcast(" in path.read_text())
    (submission / "broadcast.py").write_bytes(right.read_bytes())
    # must not be taken for the grader
    (submission / "grader.py").write_text("raise SystemExit('the wrong grader')\n")
    done = run(unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((unpacked / "results" / "results.json").read_text())
    jsonschema.validate(found, SCHEMA)
    states = {test["name"]: test.get("status") for test in found["tests"]}
    assert states["broadcast"] == "passed"
