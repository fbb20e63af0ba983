"""``python -m headcount run``: what a script is given, what comes of it, and how it is ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.cli import main
from headcount.core.events import Blocked, Completed, Posted
from headcount.script.tally import CallTally
from headcount.trace.message_matcher import MessageMatcher
from support.reports import told

COMMAND = [sys.executable, "-m", "headcount", "run"]


@pytest.fixture
def project(tmp_path):
    """A folder with a package, to be run from."""
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("def double(x):\n    return 2 * x\n")
    return tmp_path


def environment(**more):
    return {**os.environ, "COLUMNS": "80", **more}


def command(project, *words, **more):
    return subprocess.run(
        [*COMMAND, *words], cwd=project, env=environment(**more),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.exhaustive
def test_a_module_gets_its_arguments_its_folder_and_torchruns_variables(project):
    (project / "trainer" / "train.py").write_text(
        "import os, pickle, sys, atexit\n"
        "from .parts import double\n"
        "import torch.distributed as dist\n"
        "class Box: pass\n"
        "pickle.loads(pickle.dumps(Box()))\n"
        "names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'OWN')\n"
        "atexit.register(print, 'at the end')\n"
        "print(sys.argv[1:], os.getcwd() == sys.path[0], *map(os.environ.get, names))\n"
        "print('to stderr', double(__name__ == '__main__'), file=sys.stderr)\n"
        "dist.init_process_group('nccl')\n"
        "print('no end of line', end='')\n"
    )
    done = command(
        project, "--json", "report.json", "-m", "trainer.train", "--json", "--ranks", "x", OWN="1"
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        mine = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}]")]
        assert mine == [
            f"[{rank}] ['--json', '--ranks', 'x'] True {rank} {rank} 2 2 1",
            f"[{rank}] to stderr 2",
            f"[{rank}] no end of lineat the end",
        ]
    assert done.stderr.startswith("✓ 2 ranks ended after")
    report = json.loads((project / "report.json").read_text())
    assert (report["ok"], report["status"], report["failure"]) == (True, 0, None)
    assert report["command"] == ["trainer.train", "--json", "--ranks", "x"]


LAUNCHED = """\
import os, sys
import torch.distributed as dist
ranks, sizes = sys.argv[1].split(","), sys.argv[2].split(",")
if "RANK" not in ranks:
    torchs = {{"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"}}
    assert not torchs & {{*os.environ}}
(rank,), (size,) = {{os.environ[one] for one in ranks}}, {{os.environ[one] for one in sizes}}
{}
dist.barrier()
assert (dist.get_rank(), dist.get_world_size()) == (int(rank), int(size))
"""
BY_ADDRESS = (
    "dist.init_process_group('gloo', init_method='tcp://127.0.0.1:1',"
    " rank=int(rank), world_size=int(size))"
)


@pytest.mark.parametrize(
    ("launcher", "ranks", "sizes", "status"),
    [
        ("torchrun", "RANK,LOCAL_RANK", "WORLD_SIZE,LOCAL_WORLD_SIZE", 0),
        ("slurm", "SLURM_PROCID,SLURM_LOCALID", "SLURM_NTASKS,SLURM_TASKS_PER_NODE", 1),
        ("mpi", "OMPI_COMM_WORLD_RANK,PMI_RANK", "OMPI_COMM_WORLD_SIZE,PMI_SIZE", 1),
    ],
)
def test_a_launcher_tells_ranks_who_they_are(project, launcher, ranks, sizes, status):
    """And torch finds nothing to meet by where no launcher of its own has said it."""
    (project / "own.py").write_text(LAUNCHED.format(BY_ADDRESS))
    (project / "torchs.py").write_text(LAUNCHED.format("dist.init_process_group('gloo')"))
    for script, expected in (("own.py", 0), ("torchs.py", status)):
        done = command(project, "--launcher", launcher, script, ranks, sizes)
        assert done.returncode == expected, done.stderr
    said = "environment variable RANK expected, but not set"
    assert (said in " ".join(done.stderr.split())) == (status == 1)


@pytest.mark.exhaustive
def test_a_script_imports_from_the_folders_of_pythonpath(project):
    for name in ("first", "second"):
        (project / name).mkdir()
        (project / name / f"{name}.py").write_text("")
    (project / "train.py").write_text("import first, second\n")
    path = os.pathsep.join(str(project / name) for name in ("first", "second"))
    assert command(project, "--ranks", "1", "train.py", PYTHONPATH=path).returncode == 0


@pytest.mark.exhaustive
def test_a_deadlock_is_reported_in_words_and_as_json(project):
    (project / "train.py").write_text(
        "import torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "for step in range(3 - dist.get_rank()):\n"
        "    dist.all_reduce(torch.ones(1))\n"
    )
    done = command(project, "--json", "-", "train.py")
    assert done.returncode == 3
    first, *lines = done.stderr.splitlines()
    assert re.match(r"✗ deadlock after \d+\.\d s, never entered \(established\): ", first)
    assert max(map(len, [first, *lines])) <= 80
    text = " ".join(line.strip() for line in [first, *lines])
    assert "rank 1 has already ended, and holds up rank 0 rank 1  last called all_reduce" in text
    waits = "waits in all_reduce at train.py:5 for rank 1: dist.all_reduce(torch.ones(1))"
    assert f"rank 0  {waits}" in text
    assert "rank 0 is at its 3rd all_reduce at train.py:5, and rank 1 made 2 there" in text
    report = json.loads(done.stdout)
    failure = report["failure"]
    assert (failure["diagnosis"], failure["file"], failure["line"]) == ("deadlock", "train.py", 5)
    assert failure["waits"][0]["for"] == failure["ended"] == [1]
    assert failure["hang"] == {
        "kind": "never entered", "grade": "established", "culprits": [1], "held": [0],
        "fate": "ended",
    }  # fmt: skip
    assert told(report)
    assert told(failure)


def test_explain_writes_its_report_as_json_too(tmp_path, capsys):
    dumps = Path(__file__).parents[1] / "support" / "dumps" / "torch-2.11" / "uneven"
    path = tmp_path / "report.json"
    assert main(["explain", str(dumps), "--json", str(path)]) == 3
    said = capsys.readouterr().out
    assert main(["explain", str(dumps), "--json", "-"]) == 3
    data, text = capsys.readouterr()
    report = json.loads(data)
    assert (said, report) == (text, json.loads(path.read_text()))
    assert told(report)
    assert report["hang"]["culprits"] == [2]


def test_without_a_command_all_are_listed(capsys):
    assert main([]) == 2
    assert "run a torch.distributed script, and say why it hangs" in capsys.readouterr().out


def test_an_option_that_is_not_there_names_the_nearest_of_its_command(capsys):
    assert main(["run", "--rnks", "2", "train.py"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--rnks is not known here: did you mean --ranks? (see" in line
    assert line.endswith(" run --help)")


@pytest.mark.parametrize(
    ("source", "words", "status", "said"),
    [
        ("import sys\nsys.exit('no data')", (), 1, "[0] no data"),
        ("raise ValueError('bad')", (), 1, "[1] ValueError: bad"),
        ("while True: pass", ("--timeout", "1"), 4, "no end after 1 s: rank 0 is still running"),
        ("", ("--ranks", "0"), 2, "--ranks"),
        ("", ("--ranks", "100000"), 2, "--ranks 100000 is too many: each rank is a process of"),
        ("", ("--trace", "nowhere/trace.json"), 2, "--trace nowhere/trace.json: its folder is not"),
        ("", ("--json", "folder"), 2, "--json folder is a folder; name a file"),
        ("", ("folder",), 2, "folder is a folder, and there is no folder/__main__.py to run"),
        ("import os\nos._exit(3)", (), 1, "train.py:2: the process exits with status 3"),
        ("", ("-m", "nothing.here"), 1, "python -m nothing.here: "),
    ],
)
def test_the_exit_status_says_what_ended_it(project, source, words, status, said):
    (project / "train.py").write_text(source)
    (project / "folder").mkdir()
    done = command(project, *words, "train.py")
    assert done.returncode == status
    assert said in " ".join((done.stdout + done.stderr).split("\n"))
    assert "headcount/" not in done.stdout + done.stderr


@pytest.mark.exhaustive
def test_inside_torchrun_its_ranks_are_recorded(project):
    (project / "train.py").write_text(
        "import sys\n"
        "import torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "total = torch.ones(1)\n"
        "dist.all_reduce(total)\n"
        "print('total', int(total), sys.argv[1])\n"
        "if dist.get_rank() == 2 and sys.argv[1] == 'hang':\n"
        "    dist.barrier()\n"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done, hung = (
        subprocess.run(
            [*launch, "3", "-m", "headcount", "run", "train.py", word],
            cwd=project, env=environment(), capture_output=True, text=True, check=False,
        )
        for word in ("end", "hang")
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", *(f"[{rank}] total 3 end" for rank in range(3))]
    assert "✓ 3 ranks ended" in done.stderr
    assert hung.returncode == 1  # as torchrun has it
    assert "rank 2 waits in barrier at train.py:9 for ranks 0 and 1" in " ".join(
        hung.stderr.split()
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_printed_comes_at_once_and_a_signal_ends_all_with_a_report(project, number):
    (project / "train.py").write_text(
        "import time, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "try:\n"
        # one line: whichever of the two the signal meets, the report names it
        "    print('begins'); time.sleep(600)\n"
        "finally:\n"
        "    print('tidies up')\n"
    )
    with subprocess.Popen(
        [*COMMAND, "--ranks", "2", "--json", "report.json", "train.py"],
        cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        begun = {running.stdout.readline() for _ in range(2)}
        assert begun == {"[0] begins\n", "[1] begins\n"}
        running.send_signal(number)
        printed, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert "[0] tidies up" in printed
    assert "[1] tidies up" in printed
    report = json.loads((project / "report.json").read_text())
    assert (report["stopped"], report["status"]) == (number.name, 128 + number)
    assert said.startswith(f"✗ stopped by {number.name} after")
    assert "is still running at train.py:4" in " ".join(said.split())
    assert "every rank has been ended" not in said


def posted(number, blocking=True):
    return Posted(
        number, "barrier", -1, 0, "world", 0, 0, "", "", blocking, True, "file:a.py", 3, number
    )


def test_a_long_run_is_followed_and_its_beginning_forgotten():
    tally = CallTally(10)
    matcher = MessageMatcher(2, follower=tally)
    for number in range(100):
        for rank in range(2):
            matcher.take(rank, posted(number))
        for rank in range(2):
            matcher.take(rank, Completed(number, number))
    kept = [op.number for op in matcher.operations[0]]
    assert len(matcher.operations[0]) == 100
    assert kept == list(range(kept[0], 100))
    assert 10 <= len(kept) < 20
    assert tally.calls[1, "barrier"] == 100
    assert not matcher.groups["world"].open
    # waiting once more for what is complete and forgotten
    matcher.take(0, Blocked(0, "file:a.py", 9, 1, 0, 0))
    assert not matcher.waits[0]


def test_operations_that_are_not_complete_are_never_forgotten():
    matcher = MessageMatcher(2, follower=CallTally(2))
    for number in range(20):
        matcher.take(0, posted(number, blocking=False))
    assert [op.number for op in matcher.operations[0]] == list(range(20))
