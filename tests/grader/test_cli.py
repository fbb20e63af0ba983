"""The real command line, as its users call it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from grader.classroom.assignment import Assignment
from grader.cli.commands import COMMANDS
from grader.cli.main import main, make_parser
from grader.sandbox.sandboxes import missing
from headcount.core.verdict import Diagnosis
from ranks.test_worlds import FATES
from tools.site.front import EXAMPLE

ROOT = Path(__file__).resolve().parents[2]
RIGHT = ROOT / "grader/course/answers/02_broadcast/right/broadcast_flat.py"
WRONG = ROOT / "grader/course/answers/02_broadcast/broadcast_root_zero.py"


def grader(*arguments, cwd=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-m", "grader", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=100,
        env={**os.environ, **environment},
    )


@pytest.fixture
def request_here(capsys):
    """Serve a request in this process, which has imported torch already.

    What a process of its own would show no better is asked for so: every
    process costs as much of the processor as twenty verdicts.
    """

    def serve(*arguments):
        status = main([*map(str, arguments)])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, said.out, said.err)

    return serve


def test_the_readme_shows_what_the_grader_says(request_here, tmp_path):
    path = tmp_path / "exchange.py"
    path.write_text(EXAMPLE)
    said = request_here("check", path, "exchange").stdout
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(∞ .*?)```", readme, re.M | re.S)
    assert " ".join(shown.split()) in " ".join(said.split())


@pytest.fixture
def left_over():
    """Find the processes that the test has started and that have outlived their parents.

    Those of the notebooks that run beside are not ours: a kernel's server may outlive it a moment.
    """
    before = set(psutil.pids())

    def find():
        return [
            " ".join(p.info["cmdline"])
            for p in psutil.process_iter(["cmdline"])
            if p.info["cmdline"]
            and {"grader", "headcount.server.fork_server"} & set(p.info["cmdline"])
            and p.ppid() == 1
            and p.pid not in before
        ]

    return find


@pytest.mark.slow
def test_check_passes(left_over):
    done = grader("check", RIGHT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "✓ broadcast passed: 60 cases on 1, 2, 3, 4, 5 and 8 ranks" in done.stdout
    assert left_over() == []


def test_check_fails(request_here):
    done = request_here("check", WRONG)
    assert done.returncode == 1
    assert "± broadcast wrong result" in done.stdout
    assert "likely: Every rank ends with rank 0's x" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_check_as_json(request_here):
    done = request_here("check", RIGHT, "--json", "--seed", 7, "--world-sizes", "2,3")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["seed"], found["score"], found["max_score"]) == (7, 1.0, 1.0)
    assert {case["world_size"] for case in found["exercises"][0]["cases"]} == {2, 3}
    assert found["submission"] == str(RIGHT)


def test_a_call_may_take_as_many_seconds_as_asked_for(request_here, tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(
        "import time\nimport torch.distributed as dist\n\n\n"
        "def neighbours():\n    time.sleep(1)\n"
        "    rank, n = dist.get_rank(), dist.get_world_size()\n"
        "    return (rank - 1) % n, (rank + 1) % n\n"
    )
    found = [
        json.loads(
            request_here("check", path, "--json", "--world-sizes", "2", "--seconds", seconds).stdout
        )["exercises"][0]
        for seconds in ("0.15", "3")
    ]
    assert [one["diagnosis"] for one in found] == ["timeout", None]
    assert "no end after" in found[0]["message"]


def test_a_grading_may_give_a_call_more_seconds_and_an_exercise_with_it(tmp_path, monkeypatch):
    asked = []

    def grade(source, out, make_engine, exercises, options, as_json):
        asked.append(options.for_assignment(Assignment()).limits)
        return 0

    monkeypatch.setattr("grader.classroom.command.grade", grade)
    for seconds in ((), ("--seconds", "3"), ("--seconds", "0.5")):
        assert main(["grade", str(tmp_path), "--out", str(tmp_path / "out"), *seconds]) == 0
    assert [(one.call, one.exercise, one.submission) for one in asked] == [
        (1, 60, 600),
        (3, 180, 600),
        (0.5, 60, 600),
    ]


def test_a_named_exercise_that_is_absent_is_missing(request_here):
    done = request_here("check", RIGHT, "broadcast", "gather", "--json")
    assert done.returncode == 1
    verdicts = {e["name"]: e for e in json.loads(done.stdout)["exercises"]}
    assert verdicts["broadcast"]["status"] == "passed"
    assert verdicts["gather"]["diagnosis"] == "missing"
    assert verdicts["gather"]["score"] == 0


def test_the_same_seed_gives_the_same_verdict(request_here):
    def verdict():
        found = json.loads(request_here("check", WRONG, "--json", "--seed", 3).stdout)
        for exercise in found["exercises"]:
            del exercise["seconds"]
        return found

    assert verdict() == verdict()


@pytest.mark.parametrize("suffix", ["py", "ipynb"])
def test_a_solution_gets_full_marks(request_here, suffix):
    done = request_here("check", ROOT / "solutions" / f"02_broadcast.{suffix}", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["score"] == found["max_score"] == 3.0


def test_a_student_notebook_is_not_attempted(request_here):
    done = request_here("check", ROOT / "notebooks" / "01_point_to_point.ipynb", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [e["diagnosis"] for e in found["exercises"]] == ["not_attempted"] * 3
    assert found["score"] == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH came with 3.11")
@pytest.mark.exhaustive
def test_it_works_from_any_folder(tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')")
    answer = tmp_path / "answer.py"
    answer.write_text(RIGHT.read_text())
    environment = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = grader("check", "answer.py", cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stdout + done.stderr


BESIDE = (
    "import torch.distributed as dist\nfrom ranks import left, right\n\n\n"
    "def neighbours():\n    return left(), right()\n"
)
RANKS = (
    "import torch.distributed as dist\n\n\n"
    "def left():\n    return (dist.get_rank() - 1) % dist.get_world_size()\n\n\n"
    "def right():\n    return (dist.get_rank() + 1) % dist.get_world_size()\n"
)


@pytest.mark.parametrize("command", ["check", "simulate"])
def test_an_answer_imports_what_lies_beside_it_and_not_what_lies_here(tmp_path, command):
    (tmp_path / "hw").mkdir()
    answer = tmp_path / "hw" / "answer.py"
    answer.write_text(BESIDE)
    (tmp_path / "ranks.py").write_text(RANKS)
    arguments = ["neighbours", "--ranks", "4"] if command == "simulate" else ["--world-sizes", "2"]
    done = grader(command, answer, *arguments, cwd=tmp_path, PYTHONPATH=str(ROOT))
    said = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "no ranks.py was handed in beside answer.py" in said
    if command == "check":
        assert "so there is no left, which line 6 uses" in said
    assert "did you mean" not in said.lower()
    (tmp_path / "hw" / "ranks.py").write_text(RANKS)
    (tmp_path / "ranks.py").write_text("1 / 0")
    done = grader(command, answer, *arguments, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_of_a_module_beside_the_answer_is_named_with_its_file(request_here, tmp_path):
    (tmp_path / "answer.py").write_text(BESIDE)
    (tmp_path / "ranks.py").write_text(f"{RANKS}\n\nleft = lambda: dist.no_such\n")
    done = request_here("check", tmp_path / "answer.py", "--world-sizes", "2")
    said = " ".join(done.stdout.split())
    assert "rank 0, ranks.py, line 12: AttributeError" in said
    assert "answer.py, line 6, in neighbours: return left(), right()" in said
    assert "ranks.py, line 12, in <lambda>: left = lambda: dist.no_such" in said


def test_a_compiled_answer_runs_as_it_is_written_and_a_remark_says_so(request_here, tmp_path):
    source = RIGHT.read_text().replace("def broadcast", "@torch.compile\ndef broadcast")
    assert "@torch.compile" in source
    (tmp_path / "answer.py").write_text(f"import torch\n{source}")
    started = time.monotonic()
    done = request_here("check", tmp_path / "answer.py", "--world-sizes", "2,3")
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "torch.compile is left out here: what it is given runs as it is written" in said
    assert "_dynamo" not in done.stdout
    assert time.monotonic() - started < 20


# Requests that are wrong. ---------------------------------------------------------


def wrong_files(folder):
    folder.mkdir()
    (folder / "empty.py").write_text("")
    (folder / "binary.py").write_bytes(bytes(range(256)))
    (folder / "json.ipynb").write_text('{"a": 1}')
    (folder / "old.ipynb").write_text('{"nbformat": 3, "worksheets": []}')
    (folder / "text.ipynb").write_text("hello")
    (folder / "nothing.py").write_text("x = 1")
    (folder / "garbage.py").write_text("this is no python at all")
    return folder


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["chec"], "invalid choice: 'chec'"),
        (["check"], "FILE"),
        (["check", "none.py"], "none.py does not exist"),
        (["check", "."], "is a folder"),
        (["check", "empty.py"], "is empty"),
        (["check", "binary.py"], "not text"),
        (["check", "json.ipynb"], "no nbformat"),
        (["check", "old.ipynb"], "format 3"),
        (["check", "text.ipynb"], "JSON"),
        (["check", "nothing.py"], "defines no exercise"),
        (["check", "garbage.py"], "is no Python: line 1"),
        (["check", "nothing.py", "brodcast"], "did you mean broadcast"),
        (["check", "nothing.py", "--world-sizes", "2,x"], "not '2,x'"),
        (["check", "nothing.py", "--world-sizes", "0"], "1 to 64 ranks, not 0"),
        (["check", "nothing.py", "--world-sizes", "1000"], "1 to 64 ranks, not 1000"),
        (["check", "nothing.py", "--seed", "abc"], "invalid int value: 'abc'"),
        (
            ["check", "nothing.py", "--seconds", "0"],
            "a number of seconds above 0 is needed, not '0'",
        ),
        (["check", "nothing.py", "--seconds", "nan"], "not 'nan'"),
        (
            ["check", "nothing.py", "--sedd", "1"],
            "--sedd 1 is not known here: did you mean --seed",
        ),
        (["check", "nothing.py", "--zzz"], "--zzz is not known here (see"),
        (["hint", "brodcast"], "did you mean broadcast"),
        (["hint"], "EXERCISE"),
    ],
)
def test_a_wrong_request_gets_one_clear_line(tmp_path, monkeypatch, request_here, arguments, text):
    monkeypatch.chdir(wrong_files(tmp_path / "files"))
    done = request_here(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("grader: ")
    assert done.stderr.count("\n") == 1
    assert text in done.stderr


# Answers that go wrong, each with its word and without a traceback of ours. -------

PREAMBLE = """
import ctypes, itertools, os, signal, sys, time
import torch
import torch.distributed as dist
"""


def _source(act):
    import inspect

    body = inspect.getsource(act)
    if "_recurse()" in body:
        return body + "\n\ndef broadcast(x, src):\n    _recurse()\n"
    if "Unprintable" in body:
        import ranks.test_worlds as module

        body = inspect.getsource(module.Unprintable) + body
    return body + f"\n\ndef broadcast(x, src):\n    {act.__name__}()\n"


def test_a_wrong_request_is_told_by_the_exit_status(tmp_path):
    done = grader("check", "none.py", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "grader: none.py does not exist\n"


@pytest.mark.parametrize("act, word, text", FATES, ids=[act.__name__ for act, *_ in FATES])
def test_whatever_an_answer_does_the_command_line_says_it(
    tmp_path, request_here, act, word, text, left_over
):
    path = tmp_path / "answer.py"
    path.write_text(PREAMBLE + _source(act))
    done = request_here("check", path, "--world-sizes", "2")
    assert done.returncode == 1
    mark = "∞" if word in ("deadlock", "timeout") else "✗"
    assert f"{mark} broadcast {Diagnosis(word).words}" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr == ""
    assert left_over() == []


# The other commands. --------------------------------------------------------------


def test_list(request_here):
    done = request_here("list")
    assert (done.returncode, done.stderr) == (0, "")
    chapter = "02_broadcast  worth 3\n   1  broadcast(x: Tensor, src: int) -> None\n"
    assert chapter in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    rows = json.loads(request_here("list", "--json").stdout)
    points = sum(row["max_score"] for row in rows)
    assert done.stdout.endswith(f"\n{len(rows)} exercises, {points:g} points\n")
    assert [row["name"] for row in rows][:3] == ["who_am_i", "neighbours", "ping_pong"]
    assert rows[0]["max_score"] == 1.0


def test_hint(request_here):
    done = request_here("hint", "broadcast")
    assert done.stdout.startswith("1. ")
    assert done.stdout.endswith("\n2 more: python -m grader hint broadcast --more\n")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_whole_answer_is_announced_before_it_is_shown(request_here):
    more = request_here("hint", "broadcast", "--more").stdout
    assert all(f"\n{number}. " in f"\n{more}" for number in (1, 2))
    announced = "The next hint is the whole answer. To see it: python -m grader hint broadcast"
    assert f"{announced} --more --more" in " ".join(more.split())
    assert "dist.send(x, dst)" not in more
    assert "dist.send(x, dst)" in request_here("hint", "broadcast", "--more", "--more").stdout


@pytest.mark.exhaustive
def test_doctor():
    done = grader("doctor")
    assert done.returncode == 0
    assert "two ranks" in done.stdout
    assert "forked, joined and done in" in done.stdout
    assert missing() or "two ranks ran in it" in done.stdout


@pytest.mark.parametrize(("words", "status"), [(["--help"], 0), ([], 2)])
def test_help_lists_the_commands_and_so_does_no_command(words, status):
    done = grader(*words)
    assert (done.returncode, done.stderr) == (status, "")
    assert "judge a .py file or a notebook" in done.stdout


PARSERS = next(action.choices for action in make_parser()._actions if action.choices)


def test_every_command_has_its_module_and_every_module_is_a_command():
    files = {path.stem for path in (ROOT / "grader" / "cli" / "commands").glob("*.py")}
    assert files == {*COMMANDS, "__init__"}
    assert (*PARSERS,) == (*COMMANDS,)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns_and_explains_every_option(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert said.startswith(f"usage: python -m grader {command} ")
    unexplained = [one.dest for one in PARSERS[command]._actions if not one.help]
    assert unexplained == []
    assert "For example:" in said
    words = shlex.split(f"{command} {COMMANDS[command]}")
    assert make_parser([command]).parse_args(words).command == command


def test_help_of_a_command_imports_its_module_alone_and_not_torch():
    code = (
        "import sys; sys.argv = ['-m']; from grader.cli.main import COMMANDS, make_parser\n"
        "def there(): return {name for name in sys.modules if 'cli.commands.' in name}\n"
        "for name in COMMANDS:\n"
        "    before, _ = there(), make_parser([name])\n"
        "    assert there() - before == {f'grader.cli.commands.{name}'}, (name, there())\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_into_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m grader list | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stderr == ""
    assert done.stdout == "Part one\n"
    status = f"{sys.executable} -m grader list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", status], capture_output=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("{} list >&-", "standard output is closed, and the result is written there; > FILE"),
        ("{} check {} --world-sizes 2 >&-", "standard output is closed"),
        ("{} list > /dev/full", "standard output cannot be written: the disk is full"),
        ("{} check {} --world-sizes 2 > /dev/full", "standard output cannot be written"),
        ("ulimit -f 0; {} check {} --world-sizes 2", "no temporary file can be written"),
        ("ulimit -f 0; {} grade {} --out /nowhere", "no temporary file can be written"),
        ("{} nothing 2> /dev/full", None),
        ("{} nothing 2>&-", None),
    ],
)
def test_output_that_cannot_be_written_is_one_line(shell, says):
    command = shell.format(f"{sys.executable} -m grader", RIGHT)
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    if says is None:
        assert done.stderr == ""
    else:
        assert done.stderr.startswith(f"grader: {says}")
        assert done.stderr.count("\n") == 1


@pytest.mark.exhaustive
def test_a_terminal_without_unicode():
    done = grader("check", RIGHT, "--world-sizes", "1", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "\\u2713 broadcast" in done.stdout


def test_ctrl_c_counts_even_where_its_exception_is_lost(monkeypatch, capsys):
    """As in the callback of a weak reference, where Python can only print it."""

    def lose(request):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr("grader.cli.commands.list.run", lose)
    # a shell without job control starts what runs in the background with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["list"]) == 130
        assert "stopped; every rank has been ended" in capsys.readouterr().err
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.exhaustive
def test_ctrl_c_on_a_terminal_leaves_nothing(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text("def broadcast(x, src):\n    while True: pass\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "grader", "check", str(path)])
    me = psutil.Process(pid)
    deadline = time.monotonic() + 60
    spinning = []
    while not spinning and time.monotonic() < deadline:
        children = me.children(recursive=True)
        spinning = [c for c in children if c.ppid() != pid and c.cpu_times().user > 0.1]
        time.sleep(0.02)
    assert spinning, "no rank is at work"
    everyone = me.children(recursive=True)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    _, alive = psutil.wait_procs(everyone, timeout=10)
    assert alive == []
    os.close(terminal)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "inv\udcff.py", "broadcast"], "is not UTF-8: give another name or text"),
        (["grade", "class", "--out", ""], "OUT is empty; say which"),
        (["grade", "class", "--out", "file", "--layout", "folders"], "is no folder"),
        (["grade", "class", "--out", "r", "--memory", "9" * 20], "of 12 digits at most"),
        (["run", "--flight-recorder", "file", "file"], "is a file; name a folder"),
    ],
)
def test_what_cannot_be_a_name_or_a_number_is_refused_in_one_line(
    tmp_path, monkeypatch, capsys, words, said
):
    (tmp_path / "file").touch()
    (tmp_path / "inv\udcff.py").write_text("def broadcast(x, root): pass\n")
    (tmp_path / "class" / "someone").mkdir(parents=True)
    (tmp_path / "class" / "someone" / "answers.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
