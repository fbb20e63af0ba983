"""The results of a class: kept whatever happens, and never judged twice."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from grader.classroom import store as store_module
from grader.classroom.store import (
    Sources,
    Store,
    StoredSubmission,
    StoreError,
    course_mark,
    fingerprint,
    seed_of_inputs,
)
from grader.course.chapters import discover
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status
from headcount.core.errors import RequestError
from headcount.core.verdict import Diagnosis, Site

ROOT = Path(__file__).resolve().parents[2]


def entry(key="ada", exercises=("broadcast", "shift"), **fields):
    return StoredSubmission(
        key=key, student=key.title(), digest="d", exercises=list(exercises), **fields
    )


def verdict(name="broadcast", status=Status.PASSED, **fields):
    return ExerciseVerdict(name, "02_broadcast", status, 1.0, 1.0, seed=2**127, **fields)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as made:
        yield made


def test_what_is_kept_is_read_again(tmp_path):
    failed = verdict(
        status=Status.FAILED,
        diagnosis=Diagnosis.DEADLOCK,
        message="rank 0 waits 🕳 \ud800".encode("utf-8", "replace").decode(),
        cases=(CaseVerdict("c", 4, Status.FAILED, Diagnosis.DEADLOCK, "m", 1, Site("f.py", 3)),),
    )
    with Store(tmp_path) as store:
        store.note(0, entry(email="ada@example.org", problems=["late"]))
        store.save("ada", "print", failed)
    with Store(tmp_path, readonly=True) as store:
        assert store.entries() == [entry(email="ada@example.org", problems=["late"])]
        assert store.verdicts("ada") == {"broadcast": failed}
        assert store.known("ada") == {"broadcast": "print"}


def test_the_class_keeps_its_order(store):
    for position, key in enumerate(["zoe", "ada", "bob"]):
        store.note(position, entry(key))
    assert [one.key for one in store.entries()] == ["zoe", "ada", "bob"]


def test_who_is_gone_is_forgotten(store):
    for position, key in enumerate(["zoe", "ada"]):
        store.note(position, entry(key))
        store.save(key, "print", verdict())
    store.keep_only({"ada"})
    assert [one.key for one in store.entries()] == ["ada"]
    assert store.verdicts("zoe") == {}


def test_an_exercise_that_is_not_handed_in_any_more_is_forgotten(store):
    store.note(0, entry())
    store.save("ada", "print", verdict("broadcast"))
    store.save("ada", "print", verdict("shift"))
    store.note(0, entry(exercises=["shift"]))
    assert set(store.verdicts("ada")) == {"shift"}


def test_a_second_verdict_remembers_the_first(store):
    store.save("ada", "one", verdict(status=Status.FAILED))
    assert store.earlier("ada") == {}
    store.save("ada", "two", verdict())
    assert store.earlier("ada")["broadcast"].status is Status.FAILED
    assert store.verdicts("ada")["broadcast"].passed


def test_faults_of_the_grader_are_not_known(store):
    store.save("ada", "print", verdict(status=Status.ERROR))
    assert store.known("ada") == {}
    assert store.verdicts("ada")["broadcast"].status is Status.ERROR


def test_of_what_ranks_print_the_beginning_is_kept_where_the_verdict_comes_from(store):
    right = CaseVerdict("a", 2, Status.PASSED, output=("seen by nobody", ""))
    wrong = CaseVerdict("b", 2, Status.FAILED, Diagnosis.WRONG_VALUE, output=("x" * 60_000, "y"))
    store.save("ada", "print", verdict(status=Status.FAILED, cases=(right, wrong)))
    first, second = store.verdicts("ada")["broadcast"].cases
    assert first.output == ()
    assert [len(text) for text in second.output] == [4000, 1]


def test_the_secret_of_a_class_is_drawn_once(tmp_path):
    with Store(tmp_path) as store:
        secret = store.secret()
        assert secret.bit_length() > 100
        assert store.secret() == secret
    with Store(tmp_path) as store:
        assert store.secret() == secret
    with Store(tmp_path / "other") as store:
        assert store.secret() != secret


def test_files_that_differ_meet_other_inputs_and_equal_ones_the_same():
    seeds = {seed_of_inputs(secret, files) for secret in (1, 2) for files in ("aa", "ab")}
    assert len(seeds) == 4
    assert min(seeds).bit_length() > 100
    assert seed_of_inputs(1, "aa") in seeds


def test_two_graders_do_not_share_a_folder(tmp_path):
    with Store(tmp_path):
        with pytest.raises(RequestError, match="another grader is at work"):
            Store(tmp_path)
        with Store(tmp_path, readonly=True) as looking:
            assert looking.entries() == []
    Store(tmp_path).close()


def modes(folder):
    """The modes of a folder and of all that is in it, as octal numbers, by name."""
    return {
        path.relative_to(folder.parent).as_posix(): f"{stat.S_IMODE(path.stat().st_mode):o}"
        for path in (folder, *folder.rglob("*"))
    }


@pytest.fixture
def umask_022():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_nobody_else_reads_verdicts_and_secret(tmp_path, umask_022, journal):
    """Nor what SQLite puts beside them, while something is being written."""
    with Store(tmp_path / "results") as store:
        store.secret()
        with contextlib.closing(sqlite3.connect(store.path)) as writing, writing:
            writing.execute(f"PRAGMA journal_mode = {journal}")
            writing.execute("DELETE FROM settings")
            during = modes(tmp_path / "results")
    assert during.pop("results") == "700"
    assert len(during) == {"delete": 3, "wal": 4}[journal]
    assert set(during.values()) == {"600"}


@pytest.mark.parametrize("readonly", [False, True])
def test_a_store_that_everybody_could_read_is_mended(tmp_path, readonly):
    with Store(tmp_path) as store:
        seed = store.secret()
    store.path.chmod(0o644)
    with Store(tmp_path, readonly=readonly) as store:
        assert modes(tmp_path)[f"{tmp_path.name}/grades.sqlite"] == "600"
        assert store.secret() == seed


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap makes the disk")
def test_a_store_on_a_disk_that_is_read_only_is_read(tmp_path):
    with Store(tmp_path) as store:
        store.note(0, entry())
    store.path.chmod(0o644)
    script = f"{_SAVING}\nprint(len(Store(Path('/results'), readonly=True).entries()))"
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(tmp_path), "/results", "--",
         sys.executable, "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_what_is_no_store_is_said(tmp_path):
    with pytest.raises(RequestError, match="holds no results"):
        Store(tmp_path, readonly=True)
    (tmp_path / "grades.sqlite").write_text("no database, but long enough to be taken for one" * 9)
    with pytest.raises(StoreError, match=r"grades\.sqlite"):
        Store(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="is no folder"):
        Store(tmp_path / "file")


def test_a_store_of_another_version_is_left_alone(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "grades.sqlite")) as database:
        database.execute("PRAGMA user_version = 99")
    for _ in range(2):  # the first attempt keeps no lock
        with pytest.raises(RequestError, match="another version"):
            Store(tmp_path)


#: What a process needs that saves verdicts: nothing of it takes torch.
_SAVING = f"""
import sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from pathlib import Path
from grader.classroom.store import Store, StoreError
from grader.exercise.verdict import ExerciseVerdict, Status
{inspect.getsource(verdict)}
"""

#: Saves verdict after verdict, and says so after each.
_WRITER = f"""{_SAVING}
with Store(Path(sys.argv[1])) as store:
    for number in range(int(sys.argv[2])):
        store.save("ada", str(number), verdict("exercise " + str(number), message="x" * 500))
        print(number, flush=True)
"""


def writer(folder, count, prefix=()):
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", _WRITER, str(folder), str(count)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_what_was_said_to_be_saved_survives_a_kill(tmp_path):
    for number in range(4):
        folder = tmp_path / str(number)
        process = writer(folder, 10_000)
        wanted = random.Random(number).randrange(1, 60)
        said = [process.stdout.readline() for _ in range(wanted)]
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        last = int(([*said, *rest])[-1])
        with Store(folder) as store:
            # the one after it may have been saved and not said
            assert set(range(last + 1)) <= set(map(int, store.known("ada").values()))


def test_a_full_disk_loses_nothing(tmp_path):
    """A file system of 300 kB: it fills up, says so, and goes on when there is room."""
    script = _SAVING + textwrap.dedent(
        """
        folder = Path("/small/results")
        with Store(folder) as store:
            store.secret()
            ballast = Path("/small/ballast")
            ballast.write_bytes(bytes(120_000))
            saved = 0
            try:
                while True:
                    store.save("ada", str(saved), verdict(f"e{saved}", message="x" * 500))
                    saved += 1
            except StoreError as error:
                print(error)
            ballast.unlink()
            assert len(store.known("ada")) == saved, "lost"
            store.save("ada", "after", verdict("after"))
        with Store(folder) as store:
            assert len(store.known("ada")) == saved + 1
        print(saved > 20)
        """
    )
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", "300000", "--tmpfs", "/small", "--",
         sys.executable, "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    message, enough = done.stdout.splitlines()
    assert "make room and grade again" in message
    assert enough == "True"


# What a verdict depends on. --------------------------------------------------


def test_a_fingerprint_changes_with_all_that_a_verdict_depends_on():
    exercises = discover()
    prints = {
        fingerprint(exercises[name], digest, seed, limits)
        for name in ("broadcast", "ring_all_reduce")
        for digest in ("a", "b")
        for seed in (1, 2)
        for limits in ((5.0,), (6.0,))
    }
    assert len(prints) == 16


@pytest.fixture(scope="module")
def package():
    """The files of the grader and of headcount, by path."""
    return {
        path.relative_to(folder.parent).as_posix(): path.read_bytes()
        for folder in (ROOT / "grader", ROOT / "headcount" / "src" / "headcount")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def marks(sources):
    """By exercise, what its verdicts depend on in the grader's sources."""
    return {
        name: (sources.engine, sources.declaration(exercise))
        for name, exercise in discover().items()
    }


def after_a_change_of(package, path):
    """The exercises whose verdicts a change of a file does not keep."""
    before = marks(Sources(package))
    after = marks(Sources({**package, path: package[path] + b"\n# changed\n"}))
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    "path",
    [
        "grader/classroom/assets/page.css",
        "grader/classroom/pages.py",
        "grader/classroom/canvas.py",
        "grader/report/player.css",
        "grader/report/looks.py",
        "grader/report/html.py",
        "grader/cli/skeleton.py",
        "grader/course/recorded/broadcast.json",
        "grader/__main__.py",
        "headcount/script/command.py",
    ],
)
def test_what_judging_does_not_reach_judges_nobody_again(package, path):
    assert after_a_change_of(package, path) == set()


@pytest.mark.parametrize(
    "path", ["grader/course/help/02_broadcast.md", "grader/course/chapters/ch02_broadcast.py"]
)
def test_help_and_module_of_a_chapter_judge_its_exercises_again(package, path):
    own = {name for name, one in discover().items() if one.chapter == "02_broadcast"}
    assert own
    assert own <= after_a_change_of(package, path)
    assert "scatter" not in after_a_change_of(package, path)


def test_a_known_answer_judges_its_chapter_again(package):
    path = next(path for path in package if path.startswith("grader/course/answers/02_"))
    own = {name for name, one in discover().items() if one.chapter == "02_broadcast"}
    assert after_a_change_of(package, path) == own


def test_every_module_that_a_grading_loads_counts(package, tmp_path):
    """The modules that are found by their text are held against those that Python has loaded."""
    (tmp_path / "02_broadcast.py").write_text("def broadcast(x, src):\n    return x\n")
    script = textwrap.dedent("""
        import sys
        import grader.classroom.grading
        from grader.course.chapters import discover
        from grader.judge.judge import Judge, Settings
        from grader.submission.submission import Submission
        from headcount.launch.launchers import default_launcher

        answer = Submission.from_file("02_broadcast.py")
        verdict = Judge(default_launcher(), Settings(1)).judge(discover()["broadcast"], answer)
        assert verdict.diagnosis == "wrong_type", verdict
        print(*(name for name in sys.modules if name.split(".")[0] in ("grader", "headcount")))
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    of_chapters = {name for name in loaded if name.startswith("grader.course.chapters.")}
    assert len(loaded - of_chapters) > 80
    paths = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for path in package
    }
    before = Sources(package).engine
    changed = (paths[name] for name in sorted(loaded - of_chapters))
    engines = {one: Sources({**package, one: package[one] + b"\n#\n"}).engine for one in changed}
    # what only some chapters import counts for the exercises of these
    left = [one for one, engine in engines.items() if engine == before]
    assert [one for one in left if not after_a_change_of(package, one)] == []
    assert len(left) < 10


@pytest.mark.parametrize(
    "path",
    [
        "grader/judge/judge.py",
        "grader/exercise/hints.py",
        "headcount/server/fork_server.py",
        "grader/exercise/compare.py",
    ],
)
def test_what_judges_every_exercise_judges_every_exercise_again(package, path):
    before = marks(Sources(package))
    after = marks(Sources({**package, path: package[path] + b"\n# changed\n"}))
    assert not any(before[name] == after[name] for name in before)


def test_a_chapter_that_is_new_judges_no_other_again(package):
    new = {"grader/course/chapters/ch99_new.py": b"import torch\n"}
    assert marks(Sources({**package, **new})) == marks(Sources(package))


@pytest.mark.parametrize("package_name", ["torch", "numpy", "msgspec", "cloudpickle", "greenlet"])
def test_another_version_of_a_package_that_judging_uses_judges_again(
    package, package_name, monkeypatch
):
    before = Sources(package).engine
    known = store_module.version
    monkeypatch.setattr(
        store_module, "version", lambda name: "9.9" if name == package_name else known(name)
    )
    assert Sources(package).engine != before


@pytest.mark.parametrize("package_name", ["rich", "Jinja2", "jupyterlab", "matplotlib"])
def test_another_version_of_what_judging_does_not_use_judges_nobody_again(
    package, package_name, monkeypatch
):
    before = Sources(package).engine
    known = store_module.version
    monkeypatch.setattr(
        store_module, "version", lambda name: "9.9" if name == package_name else known(name)
    )
    assert Sources(package).engine == before


def test_another_python_judges_again(package, monkeypatch):
    before = Sources(package).engine
    monkeypatch.setattr(store_module.platform, "python_version", lambda: "3.99.0")
    assert Sources(package).engine != before


def test_a_course_has_another_mark_when_it_grows_or_a_chapter_moves():
    course = dict(discover())
    smaller = {name: one for name, one in course.items() if name != "broadcast"}
    moved = {**course, "broadcast": dataclasses.replace(course["broadcast"], chapter="99_new")}
    assert len({course_mark(one) for one in (course, smaller, moved)}) == 3
    assert course_mark(discover()) == course_mark(course)
