"""The engine without the packages that only the course, or a class, needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Hides what an installed engine does not bring, in every process that Python starts.
HIDE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
ABSENT = {
    "IPython",
    "PIL",
    "cryptography",
    "distributed",
    "ipywidgets",
    "jinja2",
    "matplotlib",
    "yaml",
}


@pytest.fixture
def call(tmp_path):
    """Runs the command line as ``gather-round`` would be run, from another folder."""
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(absent=ABSENT))
    script = tmp_path / "gather-round"
    script.write_text("import sys\nfrom grader.__main__ import run\nsys.exit(run())\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run(*arguments):
        return subprocess.run(
            [sys.executable, script, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "GRADER_PROGRESS": ""},
        )

    return run


@pytest.mark.parametrize("suffix", [".py", ".ipynb"])
@pytest.mark.exhaustive
def test_a_file_is_checked(call, suffix):
    done = call("check", ROOT / "solutions" / f"02_broadcast{suffix}", "broadcast")
    assert done.returncode == 0, done.stderr
    assert "broadcast" in done.stdout


def test_the_usage_has_the_name_that_was_typed(call):
    done = call("check")
    assert done.returncode == 2
    assert "(see gather-round check --help)" in done.stderr


def notebook(*sources):
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "outputs": [], "source": source}
        for i, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_cell_that_only_ipython_reads_says_what_to_install(call, tmp_path):
    path = tmp_path / "magic.ipynb"
    path.write_text(notebook("%timeit 1", "def broadcast(x, src): ..."))
    done = call("check", path)
    assert done.returncode == 2
    assert "pip install 'gather-round[course]'" in done.stderr


def test_grading_says_what_to_install(call, tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "ann.py").write_text("def broadcast(x, src): ...")
    done = call("grade", tmp_path / "class", "--out", tmp_path / "results", "--layout", "files")
    assert done.returncode == 2
    assert "pip install 'gather-round[class]'" in done.stderr
    assert "Traceback" not in done.stderr
