"""Progress: the real command line, real kernels, and files that are not as they should be."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import nbformat
import pytest

from grader.api import catalogue
from grader.cli.main import main
from grader.course.course_map import drawing, map_html
from grader.course.progress import (
    CourseProgress,
    ExerciseProgress,
    ExerciseRecord,
    ProgressFile,
    note,
    overview,
)
from grader.course.progress_report import progress_look, progress_report
from grader.errors import ProgressFileError
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status
from grader.report.looks import Look
from headcount.report import plain
from tests.kernels import start_kernel

ROOT = Path(__file__).resolve().parents[2]
RIGHT = ROOT / "grader/course/answers/02_broadcast/right/broadcast_flat.py"
WRONG = ROOT / "grader/course/answers/02_broadcast/broadcast_root_zero.py"
ALL = len(catalogue())
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.fixture
def course(tmp_path):
    """A learner's copy of the course, with a right and a wrong answer of theirs."""
    folder = tmp_path / "course"
    for name in ("notebooks", "solutions"):
        (folder / name).mkdir(parents=True)
        for path in (ROOT / name).glob("00_*"):
            shutil.copy(path, folder / name)
    shutil.copy(RIGHT, folder / "notebooks" / "right.py")
    shutil.copy(WRONG, folder / "notebooks" / "wrong.py")
    return folder


def environment(**changes):
    """That of a learner: nothing says where progress is to be kept."""
    kept = {k: v for k, v in os.environ.items() if k != "GRADER_PROGRESS"}
    return {**kept, "PYTHONPATH": str(ROOT), **changes}


def process(*arguments, cwd, before=(), **changes):
    """Serve a request in a process of its own, which imports torch first."""
    return subprocess.run(
        [*before, sys.executable, "-m", "grader", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=100,
        env=environment(**changes),
    )


def grader(*arguments, cwd, **changes):
    """Serve a request in this process: nothing but the file can tell of an earlier one."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.delenv("GRADER_PROGRESS", raising=False)
        for name, value in {"COLUMNS": "80", **changes}.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([*map(str, arguments)])
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def asked(*arguments, cwd, **changes):
    """What ``progress`` says."""
    return grader("progress", *arguments, cwd=cwd, **changes)


def states(cwd, **changes):
    """The states that progress reports, without what is untouched."""
    if "PYTHONPATH" in changes:  # another copy of the package is asked
        done = process("progress", "--json", cwd=cwd, **changes)
    else:
        done = asked("--json", cwd=cwd, **changes)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["exercises"]
    return {row["name"]: row["state"] for row in rows if row["state"] != "untouched"}


def file_of(course):
    return course / ".grader" / "progress.json"


def verdict(name="broadcast", status=Status.PASSED, score=1.0):
    return ExerciseVerdict(name, "02_broadcast", status, score, 1.0, seconds=0.25)


#: What a process needs that enters checks: nothing of it takes torch.
ENTERING = f"""
import sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.course.progress import ProgressFile
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
{inspect.getsource(verdict)}
"""


# What a learner sees. -------------------------------------------------------------


def test_before_anything_is_checked(course):
    done = process("progress", cwd=course)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"0 of {ALL} exercises passed"
    assert done.stdout.count("untouched") == ALL
    assert not file_of(course).parent.exists()  # to ask leaves nothing behind


@pytest.mark.exhaustive
def test_checks_are_entered_and_what_passed_stays_passed(course):
    assert grader("check", "notebooks/wrong.py", cwd=course).returncode == 1
    assert states(course) == {"broadcast": "tried"}
    shown = asked(cwd=course).stdout
    assert re.search(r"± broadcast +tried, best 0\.", shown)
    assert grader("check", "notebooks/right.py", cwd=course).returncode == 0
    assert states(course) == {"broadcast": "passed"}
    grader("check", "notebooks/wrong.py", cwd=course)
    shown = asked(cwd=course / "notebooks").stdout  # found from further in
    assert re.search(r"✓ broadcast +passed, not the last time", shown)
    assert "02 · Broadcast (1 of 3)\n" in shown
    assert shown.endswith(f"\n1 of {ALL} exercises passed\n")
    assert max(map(len, shown.splitlines())) <= 80


def test_progress_as_json(course):
    grader("check", "notebooks/right.py", "--seed", 3, cwd=course)
    found = json.loads(asked("--json", cwd=course).stdout)
    assert set(found) == {
        "schema_version",
        "grader_version",
        "file",
        "trouble",
        "unknown",
        "passed",
        "exercises",
    }
    assert Path(found["file"]) == file_of(course).resolve()
    assert (found["passed"], found["trouble"], found["unknown"]) == (1, [], [])
    (row,) = (row for row in found["exercises"] if row["name"] == "broadcast")
    ended, took = datetime.fromisoformat(row.pop("last_check")), row.pop("seconds")
    assert ended.utcoffset() is not None
    assert took > 0
    assert row == {
        "name": "broadcast",
        "chapter": "02_broadcast",
        "state": "passed",
        "score": 1.0,
        "max_score": 1.0,
        "checks": 1,
        "last_passed": True,
    }


@pytest.mark.slow
def test_what_does_not_count(course):
    """Solutions, stubs, what is missing, and a part of the world sizes."""
    (course / "tests").mkdir()
    shutil.copy(RIGHT, course / "tests" / "right.py")
    requests = (
        ["solutions/00_ranks_and_groups.py"],
        ["tests/right.py"],
        ["notebooks/00_ranks_and_groups.ipynb"],
        ["notebooks/right.py", "broadcast", "gather", "--world-sizes", "2,3"],
    )
    for request in requests:
        grader("check", *request, cwd=course)
        assert not file_of(course).exists(), request
    sizes = ",".join(map(str, catalogue()["broadcast"].world_sizes))
    grader("check", "notebooks/right.py", "--world-sizes", sizes, cwd=course)
    assert states(course) == {"broadcast": "passed"}


@pytest.mark.slow
def test_somebody_elses_file_does_not_count(course, tmp_path):
    """A friend's notebook, a submission, a copy of the course: only one's own ``notebooks`` do."""
    friends = tmp_path / "friend" / "notebooks"
    shutil.copytree(course / "notebooks", friends)
    cells = [nbformat.v4.new_code_cell(RIGHT.read_text())]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), friends / "02_broadcast.ipynb")
    shutil.copy(friends / "02_broadcast.ipynb", course / "OTHER.ipynb")
    for other in ("OTHER.ipynb", friends / "02_broadcast.ipynb"):
        done = grader("check", other, "broadcast", cwd=course)
        assert (done.returncode, done.stderr) == (0, "")
        assert not (course / ".grader").exists()
        assert not (tmp_path / "friend" / ".grader").exists()
    shutil.copy(friends / "02_broadcast.ipynb", course / "notebooks")
    grader("check", "02_broadcast.ipynb", "broadcast", cwd=course / "notebooks")
    assert states(course) == {"broadcast": "passed"}


WHO_AM_I = """
import torch, torch.distributed as dist
from grader import check, progress

def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

check(who_am_i)
"""


@pytest.mark.parametrize("folder, counts", [("notebooks", True), ("solutions", False)])
def test_a_kernel_enters_its_checks(course, folder, counts):
    manager, client = start_kernel(cwd=str(course / folder), env=environment())
    data, pages = {}, []

    def hear(message):
        if message["msg_type"] in ("execute_result", "display_data", "update_display_data"):
            data.update(message["content"]["data"])
            pages.append(data.get("text/html", ""))

    try:
        for code in (WHO_AM_I, "progress()"):
            client.execute_interactive(code, output_hook=hear, timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert file_of(course).exists() is counts
    assert any("1 of 2 in this chapter" in page for page in pages) is counts
    text, page = data["text/plain"], data["text/html"]
    assert text.endswith(f"{int(counts)} of {ALL} exercises passed")
    assert f"{int(counts)} of {ALL} exercises passed" in page
    assert ("✓ who_am_i" in text) is counts
    assert bool(re.search("✓</strong> <code>who_am_i", page)) is counts


@pytest.mark.parametrize("folder", ["solutions", "tests", "grader", "headcount", "mine"])
def test_what_the_course_has_brought_does_not_count(course, folder, monkeypatch):
    monkeypatch.chdir(course)
    monkeypatch.delenv("GRADER_PROGRESS", raising=False)
    note([verdict()], catalogue(), course / folder / "right.py")
    assert file_of(course).exists() is (folder == "mine")


@pytest.mark.exhaustive
def test_a_script_prints_it(course):
    (course / "mine.py").write_text(f"{WHO_AM_I}progress()\n")
    done = subprocess.run(
        [sys.executable, "mine.py"],
        capture_output=True,
        text=True,
        cwd=course,
        env=environment(),
        timeout=100,
    )
    assert done.stderr == ""
    assert done.stdout.endswith(f"1 of {ALL} exercises passed\n")


# Where it is kept. ----------------------------------------------------------------


def test_switched_off(course):
    grader("check", "notebooks/right.py", cwd=course, GRADER_PROGRESS="")
    assert not file_of(course).parent.exists()
    done = asked(cwd=course, GRADER_PROGRESS="")
    message = "Progress is not kept: GRADER_PROGRESS is set to nothing.\n"
    assert (done.returncode, done.stdout) == (0, message)
    found = json.loads(asked("--json", cwd=course, GRADER_PROGRESS="").stdout)
    assert (found["file"], found["exercises"]) == (None, [])


def test_elsewhere(course, tmp_path):
    place = tmp_path / "some" / "where.json"
    grader("check", "notebooks/right.py", cwd=course, GRADER_PROGRESS=str(place))
    assert not file_of(course).parent.exists()
    assert states(tmp_path, GRADER_PROGRESS=str(place)) == {"broadcast": "passed"}


@pytest.mark.exhaustive
def test_an_installed_package_far_from_any_course(course, tmp_path):
    """Then it is a small file of the user's."""
    shutil.copytree(ROOT / "grader", tmp_path / "site" / "grader")
    changes = {"PYTHONPATH": str(tmp_path / "site"), "XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "far").mkdir()
    process("check", course / "notebooks" / "right.py", cwd=tmp_path / "far", **changes)
    assert (tmp_path / "state" / "gather-round" / "progress.json").is_file()
    assert states(tmp_path, **changes) == {"broadcast": "passed"}
    assert not file_of(course).exists()


@pytest.mark.exhaustive
def test_a_package_within_a_course_far_from_it(course, tmp_path):
    """As a course's own virtual environment has it, called from another folder."""
    shutil.copytree(ROOT / "grader", course / "venv" / "grader")
    process(
        "check", course / "notebooks" / "right.py", cwd=tmp_path, PYTHONPATH=str(course / "venv")
    )
    assert file_of(course).is_file()


def test_builds_and_tests_leave_a_learners_file_alone():
    assert os.environ["GRADER_PROGRESS"] == ""
    assert overview(catalogue()) == CourseProgress(None, ())


# Files that are not as they should be. --------------------------------------------

DAMAGED = {
    "empty": (b"", "is damaged (Input data was truncated)"),
    "cut": (b'{"version": 1, "exerc', "is damaged (Input data was truncated)"),
    "binary": (bytes(range(256)), "is damaged ("),
    "other": (b"[1, 2]", "is damaged (Expected `object`, got `array`)"),
    "wrong entry": (
        b'{"version": 1, "exercises": {"broadcast": {"passed": "yes"}}}',
        "is damaged (Expected `bool`, got `str` - at `$.exercises[...].passed`)",
    ),
    "huge": (b" " * (2 << 20), "is damaged (it is larger than 1 MB)"),
    "newer": (
        b'{"version": 99, "pupils": []}',
        "was written by a newer grader (format 99, this one knows 1)",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_the_mend_and_left_as_it_is(tmp_path, name):
    contents, text = DAMAGED[name]
    path = tmp_path / "book.json"
    path.write_bytes(contents)
    book = ProgressFile(path)
    for act in (book.read, lambda: book.add([verdict()], NOW)):
        with pytest.raises(ProgressFileError) as error:
            act()
        assert text in str(error.value)
        assert "delete" in str(error.value)
    assert path.read_bytes() == contents  # it may be of use to somebody


@pytest.mark.slow
def test_a_damaged_file_breaks_no_check_and_deleting_it_mends(course):
    file_of(course).parent.mkdir()
    file_of(course).write_bytes(DAMAGED["cut"][0])
    done = grader("check", "notebooks/right.py", cwd=course)
    assert (done.returncode, done.stderr) == (0, "")
    assert "✓ broadcast passed" in done.stdout
    done = asked(cwd=course)
    assert (done.returncode, done.stderr) == (1, "")
    told = " ".join(done.stdout.split())
    assert "is damaged (Input data was truncated); delete it to begin a new one" in told
    # not "0 passed": what was done is only not known
    assert told.endswith("What you have passed is not known until that is mended.")
    assert "untouched" not in told
    file_of(course).unlink()
    grader("check", "notebooks/right.py", cwd=course)
    assert states(course) == {"broadcast": "passed"}


def test_exercises_that_the_course_no_longer_has_are_kept_and_named(course):
    ProgressFile(file_of(course)).add([verdict("telephone\x1b[31m<b>")], NOW)
    grader("check", "notebooks/right.py", cwd=course)
    done = asked(cwd=course)
    assert done.returncode == 0
    assert "in the file, but not in this course: telephone\\x1b[31m<b>\n" in done.stdout
    assert done.stdout.endswith(f"1 of {ALL} exercises passed\n")
    assert set(ProgressFile(file_of(course)).read()) == {"telephone\x1b[31m<b>", "broadcast"}


def unprivileged():
    """What a command begins with, so that a folder's permissions hold for root as well."""
    if os.geteuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]


@pytest.mark.exhaustive
def test_a_folder_that_must_not_be_written(course):
    course.chmod(0o555)
    try:
        done = process("check", "notebooks/right.py", cwd=course, before=unprivileged())
        assert (done.returncode, done.stderr) == (0, "")
        done = process("progress", cwd=course, before=unprivileged())
    finally:
        course.chmod(0o755)
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert "cannot be written: Permission denied; make room or allow writing there" in told
    assert told.endswith(f"0 of {ALL} exercises passed")


def test_a_full_disk(course):
    """No file may grow: the old one stays, whole, and nothing else is left."""
    book = ProgressFile(file_of(course))
    book.add([verdict()], NOW)
    before = file_of(course).read_bytes()
    code = f"""
{ENTERING}
import resource
from grader.errors import ProgressFileError
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
book = ProgressFile(Path(".grader/progress.json"))
for act in (lambda: book.add([verdict("gather")], NOW), book.rehearse):
    try:
        act()
    except ProgressFileError as error:
        print("cannot be written: File too large; make room" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=course, env=environment()
    )
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")
    assert file_of(course).read_bytes() == before
    left = {path.name for path in file_of(course).parent.iterdir()}
    assert left == {"progress.json", "progress.json.lock"}


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_a_place_that_is_no_file_is_left_alone(course, place):
    mode = os.stat(course / place).st_mode
    done = grader("check", "notebooks/right.py", cwd=course, GRADER_PROGRESS=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.stat(course / place).st_mode == mode
    done = asked(cwd=course, GRADER_PROGRESS=place)
    assert done.returncode == 1
    assert "is no file; set GRADER_PROGRESS to" in " ".join(done.stdout.split())


# Several at once. -----------------------------------------------------------------


def test_two_processes_at_once_lose_nothing(course):
    """Each enters a hundred checks of its own exercise, and a hundred of a shared one."""
    code = f"""
{ENTERING}
book = ProgressFile(Path(".grader/progress.json"))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    book.add([verdict(sys.argv[1])], NOW)
    book.add([verdict("shared")], NOW)
"""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=course,
            env=environment(),
        )
        for name in ("first", "second")
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=60)
        assert worker.returncode == 0
    counts = {name: entry.checks for name, entry in ProgressFile(file_of(course)).read().items()}
    assert counts == {"first": 100, "second": 100, "shared": 200}


@pytest.mark.exhaustive
def test_a_lock_that_nobody_gives_back_holds_up_no_check(course):
    """The check goes on without its entry, and its own process can say why."""
    import fcntl

    file_of(course).parent.mkdir()
    code = f"{WHO_AM_I}progress()\n"
    (course / "mine.py").write_text(code)
    with open(f"{file_of(course)}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "mine.py"],
            capture_output=True,
            text=True,
            cwd=course,
            env=environment(),
            timeout=100,
        )
    assert done.stderr == ""
    assert "✓ who_am_i passed" in done.stdout
    assert "the last check was not entered within 2 s" in " ".join(done.stdout.split())


# The parts. -----------------------------------------------------------------------


def test_an_entry_remembers_whether_its_best_only_misses_the_point(tmp_path):
    book = ProgressFile(tmp_path / "book.json")
    missed = CaseVerdict("rounds", 2, Status.FAILED, is_limit=True, misses_point=True)
    half = replace(verdict(status=Status.FAILED, score=0.5), cases=(missed,))
    found = []
    for one in (
        verdict(status=Status.FAILED, score=0.25),
        half,
        verdict(status=Status.FAILED, score=0.25),
        verdict(status=Status.FAILED, score=0.75),
    ):
        book.add([one], NOW)
        entry = ExerciseProgress(catalogue()["broadcast"], book.read()["broadcast"])
        found.append(progress_look(entry))
    assert found == [Look.PARTLY, Look.HALF, Look.HALF, Look.PARTLY]


def test_an_entry_remembers_the_best_and_the_last(tmp_path):
    book = ProgressFile(tmp_path / "book.json")
    for status, score in ((Status.FAILED, 0.5), (Status.PASSED, 1.0), (Status.FAILED, 0.25)):
        book.add([verdict(status=status, score=score)], NOW)
    entry = book.read()["broadcast"]
    assert (entry.passed, entry.best, entry.checks, entry.last_passed) == (True, 1.0, 3, False)
    assert entry.when == NOW


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "book.json")
    ProgressFile(tmp_path / "link.json").add([verdict()], NOW)
    assert (tmp_path / "link.json").is_symlink()
    assert set(ProgressFile(tmp_path / "book.json").read()) == {"broadcast"}


def test_a_file_that_must_not_be_read(tmp_path):
    book = ProgressFile(tmp_path)
    with pytest.raises(ProgressFileError, match="is no file"):
        book.read()


def test_the_map_has_a_next_step_and_links_that_open_chapters(course, monkeypatch):
    monkeypatch.setenv("GRADER_PROGRESS", str(file_of(course)))
    for name in ("who_am_i", "neighbours"):
        ProgressFile(file_of(course)).add([verdict(name)], NOW)
    for folder, link in (("notebooks", ""), (".", "notebooks/"), ("solutions", "../notebooks/")):
        monkeypatch.chdir(course / folder)
        found = overview(catalogue())
        page = map_html(found)
        # the copy has a single chapter: what is not there is no link
        assert re.findall(r'href="([^"]+)"', page) == [f"{link}00_ranks_and_groups.ipynb"]
    assert "Next:</strong> <code>ping_pong</code>, in chapter 01&nbsp;· Point to point" in page
    assert f"2 of {ALL} exercises passed" in page
    tiles = re.findall(r'<li class="(.*?)" style="--done: (\d+)%">', page)
    others = [("tile", "0")] * (len(catalogue().chapters()) - 2)
    assert tiles == [("tile full", "100"), ("tile next", "0"), *others]
    assert "✓✓</span> <span>2 of 2 passed<" in page
    assert "○○○</span> <span>0 of 3 passed · next<" in page
    assert len(page) < 32_000
    text = plain(progress_report(found))
    assert "Next: ping_pong, in chapter 01 · Point to point\n" in text


def test_a_learner_may_begin_with_any_part(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_PROGRESS", str(tmp_path / "book.json"))
    book = ProgressFile(tmp_path / "book.json")
    book.add([verdict("who_am_i")], NOW)
    book.add([verdict("node_groups")], NOW + timedelta(minutes=1))
    shown = plain(progress_report(overview(catalogue())))
    assert "Next: hierarchical_all_reduce" in shown
    assert re.findall(r"^Part \w+: 1 of \d+$", shown, re.M) == re.findall("Part.*", shown)
    # the exercise that was checked last, if it is not passed
    book.add([verdict("reduce", Status.FAILED, 0.0)], NOW + timedelta(minutes=2))
    assert overview(catalogue()).next.name == "reduce"


def test_who_has_passed_all_is_told_so():
    entry = ExerciseRecord(True, 1.0, 1.0, 1, NOW, 0.2, True)
    done = [ExerciseProgress(one, entry) for one in catalogue().values()]
    page = map_html(CourseProgress(Path("x"), tuple(done)))
    assert "You have passed every exercise of the course." in page
    assert "Next" not in page + plain(progress_report(CourseProgress(Path("x"), tuple(done))))


def test_the_map_has_the_titles_of_the_notebooks_and_a_drawing_for_each():
    shown = overview_of_nothing()
    page, text = map_html(shown), plain(progress_report(shown))
    for title in ("24 · FSDP", "03 · Scatter and gather", "17 · Sharded matrix products"):
        assert f">{title.replace(' ', '&nbsp;', 1)}</" in page
        assert f"\n{title} (0 of " in text
    drawings = [drawing(chapter) for chapter in catalogue().chapters()]
    assert all(drawings)
    assert len(set(drawings)) == len(drawings)
    assert all(one in page for one in drawings)


def overview_of_nothing():
    """The progress of a learner who has just begun."""
    return CourseProgress(
        Path("x"), tuple(ExerciseProgress(one, None) for one in catalogue().values())
    )


def test_trouble_is_shown_and_escaped_in_html():
    shown = CourseProgress(Path("x"), (), ("<i>",), ("<b> is damaged",))
    page = map_html(shown)
    assert "&lt;b&gt; is damaged" in page
    assert "&lt;i&gt;" in page
    assert "! <b> is damaged" in plain(progress_report(shown))
