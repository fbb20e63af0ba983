"""``make quick``: which tests a change concerns, and what comes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import quick
from tools.coverage import floors
from tools.coverage.marks import SIZE, number
from tools.coverage.record import RecordedTest, read, write

RECORDED = [
    RecordedTest("tests/test_a.py::test_all", 3.0, frozenset(range(9))),
    RecordedTest("tests/test_a.py::test_two", 0.5, frozenset({1, 2})),
    RecordedTest("tests/test_b.py::test_most", 2.0, frozenset(range(7))),
    RecordedTest("tests/test_b.py::test_other", 0.1, frozenset({5})),
]


def test_tests_that_run_what_has_changed_come_the_nearest_of_each_file_first():
    found = [one.id for one in quick.nearest(RECORDED, {2})]
    assert found == [
        "tests/test_a.py::test_two",
        "tests/test_b.py::test_most",
        "tests/test_a.py::test_all",
    ]


def test_what_does_not_fit_into_the_time_is_left_out_and_what_follows_may_fit():
    assert quick.fitting(RECORDED, 4.0) == [RECORDED[0], RECORDED[1], RECORDED[3]]


BEFORE = '''
"""A program."""
import os
LIMIT = 3
class A:
    def one(self):
        """Return a number."""
        return 1
    def two(self):
        return 2
def two():
    return LIMIT
'''


@pytest.mark.parametrize(
    "change, names",
    [
        (("return 1", "return 11"), {"one"}),
        (("return LIMIT", "return LIMIT + 1"), {"two"}),
        (("Return a number.", "Return one."), set()),
        (("import os", "import os  # now"), set()),
        (("import os", "import sys as os"), {"one", "two", "<module>"}),
        (("LIMIT = 3", "LIMIT = 4"), {"one", "two", "<module>"}),
        (("return LIMIT\n", "return LIMIT\ndef three():\n    pass\n"), {"three"}),
        (("import os", "import os os"), {"one", "two", "<module>"}),
        ((BEFORE, ""), {"one", "two", "<module>"}),
    ],
)
def test_a_change_touches_functions_whose_code_differs(change, names):
    assert quick.touched(BEFORE.encode(), BEFORE.replace(*change).encode()) == names


def test_a_new_import_comes_with_the_function_that_uses_it():
    after = BEFORE.replace("import os", "import os, sys").replace("return 1", "return sys.path")
    assert quick.touched(BEFORE.encode(), after.encode()) == {"one"}


def test_files_that_have_changed_or_bear_the_name_are_run_as_a_whole_and_so_are_the_rules():
    codec, reset = "headcount/tests/unit/test_codec.py", "tests/course/test_reset.py"
    tests = [codec, *quick.ALWAYS, reset]
    assert all((quick.ROOT / path).is_file() for path in tests)
    assert quick.whole(["headcount/src/headcount/core/codec.py"], tests) == tests[:2]
    assert quick.whole([reset, "README.md"], tests) == tests[1:]


@pytest.mark.slow
def test_a_chapter_is_judged_with_its_answers():
    paths = [
        "solutions/02_broadcast.py",
        "grader/course/chapters/ch03_scatter_gather.py",
        "grader/course/answers/11_ring_all_reduce/right/a.py",
        "grader/course/help/12_deadlocks.md",
        "grader/course/answers/30_capstone/a.py",
        "grader/exercise/limits.py",
        "docs/02_no.py",
    ]
    assert quick.chapters(paths) == ["02", "03", "11", "12", "30"]
    status, output = quick.judge("09")
    assert status == 0, output
    assert ": 0 wrong" in output


def test_a_change_is_what_differs_from_a_commit_and_what_git_does_not_know(tmp_path):
    def git(*words):
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name in ("kept.py", "edited.py", "gone.py", ".gitignore"):
        (tmp_path / name).write_text("ignored.py\n")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "edited.py").write_text("x = 2\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new name.py").touch()
    (tmp_path / "ignored.py").touch()
    assert quick.changed("HEAD", tmp_path) == ["edited.py", "gone.py", "new name.py"]


@pytest.mark.parametrize("base", ["nosuch", "--nosuch"])
def test_a_commit_that_git_does_not_know_is_a_wrong_request(base, capsys):
    with pytest.raises(SystemExit) as ended:
        quick.main([base])
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


SELECTED = """
import pytest
def test_good():
    pass
def test_bad():
    assert 1 == 2
@pytest.mark.slow
def test_slow():
    pass
@pytest.mark.xdist_group("some")
def test_grouped():
    pass
"""


def run_pytest(folder: Path, plugin: str, *options: str) -> str:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]
    done = subprocess.run(
        [*command, *options, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{quick.ROOT}:{quick.ROOT / 'headcount' / 'tests'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def selection(folder: Path, *listed: str, options: Sequence[str] = ()) -> str:
    (folder / "test_some.py").write_text(SELECTED)
    (folder / "listed").write_text("\n".join(listed))
    selected = ("--selected", str(folder / "listed"))
    return run_pytest(folder, "tools.coverage.selection", *selected, *options)


def test_a_list_of_tests_may_name_some_that_are_gone_and_slow_ones(tmp_path):
    listed = ["test_some.py::test_good", "test_some.py::test_gone", "test_some.py::test_slow"]
    assert "2 passed, 2 deselected" in selection(tmp_path, *listed)


def test_a_list_may_name_tests_of_a_group(tmp_path):
    workers = ("-n", "2", "--dist", "loadgroup")
    listed = ["test_some.py::test_good", "test_some.py::test_grouped"]
    assert "2 passed" in selection(tmp_path, *listed, options=workers)


def test_of_a_whole_file_slow_tests_are_left_out_and_failures_are_shown(tmp_path):
    output = selection(tmp_path, "test_some.py")
    assert "assert 1 == 2" in output
    assert "1 failed, 2 passed, 1 deselected" in output


RECORDING = """
import sys
import pytest
from support.worlds import play
from headcount.core.codec import unpack, pack
from headcount.core.verdict import amount
@pytest.fixture(scope="module")
def shared():
    return unpack(pack(3))
def program(x):
    return x
def test_on_a_rank():
    play(program, 1, 2)
def test_first(shared):
    sys.setprofile(None)
def test_second(shared):
    amount(3)
"""


def test_what_a_test_runs_is_recorded_on_its_ranks_and_in_what_it_shares(tmp_path):
    (tmp_path / "test_some.py").write_text(RECORDING)
    output = run_pytest(tmp_path, "tools.coverage.plugin", "--record", str(tmp_path / "record"))
    assert "3 passed" in output
    recorded = {one.id.partition("::")[2]: one for one in read(tmp_path / "record")}
    assert set(recorded) == {"test_on_a_rank", "test_first", "test_second"}
    calling = number("headcount/src/headcount/rank/calling.py", "run")  # by a rank alone
    codec = number("headcount/src/headcount/core/codec.py", "unpack")
    assert [calling in one.functions for one in recorded.values()] == [True, False, False]
    assert all(codec in one.functions for one in recorded.values())
    # although the test before has ended the recording
    assert (
        number("headcount/src/headcount/core/verdict.py", "amount")
        in recorded["test_second"].functions
    )


def test_a_test_that_runs_again_is_recorded_anew(tmp_path):
    path = tmp_path / "build" / "record"
    write(path, "one", 1.0, {1, SIZE - 1})
    write(path, "one", 2.0, {2, 3})
    write(path, "one", 3.0, {4}, anew=False)
    assert list(read(path)) == [RecordedTest("one", 2.0, frozenset({2, 3}))]
    assert list(read(tmp_path / "absent")) == []


MODULE = """
def one():
    def inner():
        pass
class A:
    async def two(self):
        pass
"""


def test_a_room_whose_tests_run_too_little_is_below_its_floor(tmp_path, capsys):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(MODULE)
    (tmp_path / "test_a.py").write_text("def test_here(): pass\n")
    ran = {number("room/a.py", name) for name in ("one", "inner")}
    here = RecordedTest("test_a.py::test_here[1]", 1.0, frozenset(ran))
    gone = RecordedTest("test_a.py::test_gone", 1.0, frozenset({number("room/a.py", "two")}))
    assert floors.counted([here, gone], tmp_path) == ran
    assert floors.missed("room", ran, tmp_path) == (3, ["room/a.py: two"])
    for test in (here, gone):
        write(tmp_path / "record", test.id, test.seconds, test.functions)
    said = "66.7 % of 3 functions"
    assert floors.main([], {"room": 66}, tmp_path / "record", tmp_path) == 0
    assert floors.main(["--missed"], {"room": 67}, tmp_path / "record", tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"room: {said}, floor 66 %",
        f"room: {said}, below the floor of 67 %",
        "    room/a.py: two",
    ]
    assert floors.main([], {"room": 0}, tmp_path / "absent", tmp_path) == 2


def test_every_module_has_a_floor():
    covered = {path for room in floors.FLOORS for path in floors.modules(room)}
    assert all(floors.modules(room) for room in floors.FLOORS)
    packages = [*quick.ROOT.glob("grader/**/*.py"), *quick.ROOT.glob("headcount/src/**/*.py")]
    answers = quick.ROOT / "grader" / "course" / "answers"
    assert [path for path in packages if path not in covered and answers not in path.parents] == []
