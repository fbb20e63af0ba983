"""The three graders: how each is prepared for a class, given a submission, and read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat

from benchmarks.classroom import used
from benchmarks.graders.classwork import EXERCISES, ROOT, Submission, notebook, stubs

HELPER = Path(__file__).with_name("spawned.py")
TITLE = "collectives"


@dataclass(frozen=True)
class Measured:
    """What a tool made of a submission, and what that took."""

    tool: str
    submission: str
    kind: str
    wall: float
    cpu: float
    passed: dict[str, bool]
    says: str


class Tool:
    """A grader: prepared once, then given one submission after the other."""

    def __init__(self, name: str, python: Path, home: Path) -> None:
        self.name = name
        self.home = home
        self._python = python
        home.mkdir(parents=True)
        (home / "user").mkdir()

    def command(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a module with this tool's Python, with nothing of the user's settings."""
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "JUPYTER_PATH", "JUPYTER_DATA_DIR")
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        environment |= {
            "HOME": str(self.home / "user"),
            "PATH": f"{self._python.parent}{os.pathsep}{environment['PATH']}",
            "GRADER_PROGRESS": "",
        }
        if self._python == Path(sys.executable):
            environment["PYTHONPATH"] = str(ROOT)
        return subprocess.run(
            [str(self._python), "-m", *map(str, arguments)],
            cwd=self.home, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def prepare(self) -> None:
        """Make what an instructor makes once for a class."""

    def hand_in(self, submission: Submission) -> None:
        """Put a submission where the tool finds it."""
        raise NotImplementedError

    def grade(self, submission: Submission) -> subprocess.CompletedProcess[str]:
        """The command that is measured."""
        raise NotImplementedError

    def verdict(self, submission: Submission) -> tuple[dict[str, bool], str]:
        """Which exercises passed, and what is said of the first that did not."""
        raise NotImplementedError

    def measure(self, submission: Submission) -> Measured:
        """Grade one submission."""
        self.hand_in(submission)
        cpu, wall = used(), time.perf_counter()
        done = self.grade(submission)
        wall, cpu = time.perf_counter() - wall, used() - cpu
        try:
            passed, says = self.verdict(submission)
        except (OSError, ValueError, KeyError) as error:
            raise SystemExit(f"{self.name}: {error}\n{done.stdout}\n{done.stderr}") from None
        return Measured(
            self.name, submission.name, submission.kind, round(wall, 2), round(cpu, 2), passed, says
        )


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


class Nbgrader(Tool):
    """``nbgrader autograde``, on a course with one assignment."""

    def prepare(self) -> None:
        """Release the assignment."""
        source = self.home / "source" / TITLE
        source.mkdir(parents=True)
        shutil.copy(HELPER, source)
        nbformat.write(notebook(stubs(), tests=True), source / f"{TITLE}.ipynb")
        # by default a cell may take 30 s, less than one world here
        config = "c = get_config()\nc.Execute.timeout = 600\n"
        (self.home / "nbgrader_config.py").write_text(config)
        done = self.command("nbgrader", "generate_assignment", TITLE)
        if done.returncode:
            raise SystemExit(done.stderr)

    def hand_in(self, submission: Submission) -> None:
        """Answers in the released notebook."""
        released = nbformat.read(self.home / "release" / TITLE / f"{TITLE}.ipynb", as_version=4)
        for cell in released.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "").partition("-answer")[0]
            if name in submission.answers and cell.metadata.nbgrader.solution:
                cell.source = submission.answers[name]
        folder = self.home / "submitted" / submission.name / TITLE
        folder.mkdir(parents=True)
        nbformat.write(released, folder / f"{TITLE}.ipynb")

    def grade(self, submission: Submission) -> subprocess.CompletedProcess[str]:
        """Autograde one student."""
        return self.command("nbgrader", "autograde", TITLE, "--student", submission.name)

    def verdict(self, submission: Submission) -> tuple[dict[str, bool], str]:
        """From the autograded notebook: a test that raised gives no points."""
        path = self.home / "autograded" / submission.name / TITLE / f"{TITLE}.ipynb"
        passed, says = {}, ""
        for cell in nbformat.read(path, as_version=4).cells:
            marks = cell.metadata.get("nbgrader", {})
            if marks.get("grade"):
                errors = [out for out in cell.outputs if out.output_type == "error"]
                passed[marks["grade_id"]] = not errors
                for error in errors[:1]:
                    says = says or _plain(f"{error.ename}: {error.evalue}")
        return passed, says


class Otter(Tool):
    """``otter run``: one submission, on this machine, without a container."""

    def prepare(self) -> None:
        """Make the autograder's archive."""
        tests = self.home / "tests"
        tests.mkdir()
        shutil.copy(HELPER, self.home)
        for name in EXERCISES:
            (tests / f"{name}.py").write_text(
                "OK_FORMAT = False\n\nfrom otter.test_files import test_case\n"
                f"from spawned import examine\n\nname = {name!r}\n\n"
                f"@test_case(points=1, hidden=True)\ndef test_{name}({name}):\n"
                f"    examine({name})\n"
            )
        done = self.command(
            "otter", "generate", "-t", "tests", "-o", "autograder.zip",
            "--no-requirements", "--no-environment", "--no-config", HELPER.name,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr)

    def hand_in(self, submission: Submission) -> None:
        """A notebook."""
        folder = self.home / submission.name
        folder.mkdir()
        nbformat.write(notebook(submission.answers), folder / f"{TITLE}.ipynb")

    def grade(self, submission: Submission) -> subprocess.CompletedProcess[str]:
        """Grade it."""
        path = Path(submission.name, f"{TITLE}.ipynb")
        return self.command("otter", "run", "-a", "autograder.zip", "-o", submission.name, path)

    def verdict(self, submission: Submission) -> tuple[dict[str, bool], str]:
        """From its results for Gradescope."""
        text = (self.home / submission.name / "results.json").read_text(encoding="utf-8")
        passed, says = {}, ""
        for test in json.loads(text)["tests"]:
            name = test["name"].split(" ")[0]
            if name in EXERCISES:
                passed[name] = test["score"] == test["max_score"]
                if not passed[name]:
                    says = says or _plain(test["output"]).splitlines()[-1].strip()
        return passed, says


class Ours(Tool):
    """``python -m grader grade``."""

    def hand_in(self, submission: Submission) -> None:
        """A class of one."""
        folder = self.home / submission.name / "class" / submission.name
        folder.mkdir(parents=True)
        nbformat.write(notebook(submission.answers), folder / f"{TITLE}.ipynb")

    def grade(self, submission: Submission) -> subprocess.CompletedProcess[str]:
        """Grade it."""
        place = Path(submission.name)
        return self._grade_class(place / "class", place / "out")

    def _grade_class(self, folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
        return self.command("grader", "grade", folder, "--layout", "folders", "--out", out)

    def together(self, submissions: list[Submission]) -> tuple[float, float]:
        """Seconds, wall and CPU, of one command for a class of all that were handed in."""
        everybody = self.home / "everybody"
        for submission in submissions:
            shutil.copytree(self.home / submission.name / "class", everybody, dirs_exist_ok=True)
        cpu, wall = used(), time.perf_counter()
        done = self._grade_class(everybody, self.home / "out")
        wall, cpu = time.perf_counter() - wall, used() - cpu
        if done.returncode:
            raise SystemExit(f"{self.name}: {done.stderr}")
        return wall, cpu

    def verdict(self, submission: Submission) -> tuple[dict[str, bool], str]:
        """From the results."""
        (path,) = (self.home / submission.name / "out" / "results").glob("*.json")
        exercises = json.loads(path.read_text(encoding="utf-8"))["exercises"]
        passed = {one["name"]: one["status"] == "passed" for one in exercises}
        failed = [one for one in exercises if one["status"] != "passed"]
        return passed, f"{failed[0]['diagnosis']}: {failed[0]['message']}" if failed else ""
