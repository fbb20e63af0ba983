"""``headcount attach``: jobs that hang, started by others, are read from outside and named."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headcount.script.attach.own_torch import OwnTorch
from headcount.script.attach.process_memory import UnknownLayout

SCRIPTS = Path(__file__).resolve().parent
HUNG = sorted((SCRIPTS / "hung").glob("*.py"))
TORCHRUN = [
    *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"),
    *("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"),
]

#: A command line that begins otherwise than ``python -m headcount``.
PREPARED = "from headcount.__main__ import run; {}; raise SystemExit(run())"


#: Of the jobs, those that CI attaches to; each takes half a minute, most of it waiting.
IN_CI = ("groups_in_a_circle", "sleeps")


def _each():
    for path in HUNG:
        mark = pytest.mark.exhaustive if path.stem in IN_CI else pytest.mark.nightly
        yield pytest.param(path, marks=mark)


def header(path):
    return dict(re.findall(r"^# (\w+): (.+)$", path.read_text(), re.M))


def marked(path, mark):
    lines = path.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}")}


def environment(**more):
    return {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **more}


@contextlib.contextmanager
def started(path, *arguments, folder, out=subprocess.DEVNULL):
    """Run a script on three ranks, and return the process that a person would see."""
    kind = header(path).get("launch", "torchrun")
    command = (
        [*TORCHRUN, path, *map(str, arguments)] if kind == "torchrun" else [sys.executable, path]
    )
    variables = [{}]
    if kind == "variables":
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = str(sock.getsockname()[1])
        common = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        variables = [{**common, "RANK": str(rank)} for rank in range(3)]
    ranks = [
        subprocess.Popen(
            command, cwd=folder, env=environment(TMPDIR=str(folder), **one),
            stdout=out, stderr=subprocess.DEVNULL,
        )
        for one in variables
    ]  # fmt: skip
    try:
        yield ranks[0]
    finally:
        every = [psutil.Process(one.pid) for one in ranks if one.poll() is None]
        every += [child for one in every for child in one.children(recursive=True)]
        for one in every:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(every, 30)
        for one in ranks:
            one.wait(30)


def attach(*words, begin=("-m", "headcount"), **more):
    return subprocess.run(
        [sys.executable, *begin, "attach", *map(str, words)],
        env=environment(**more), capture_output=True, text=True, check=False,
    )  # fmt: skip


def attach_when_begun(*words, **more):
    """Attach until there are ranks: a launcher has none yet when it has just begun."""
    while True:
        done = attach(*words, **more)
        if done.returncode != 2 or "no rank is at" not in done.stderr:
            return done


def judged(pid, folder, *words, **more):
    """Attach until a fault is seen: before, ranks are on their way to where they will stand."""
    report = folder / "report.json"
    while True:
        done = attach_when_begun(pid, "--json", report, *words, **more)
        assert done.returncode in (0, 3), done.stderr
        if done.returncode == 3:
            return done.stdout, json.loads(report.read_text())


@pytest.mark.parametrize("path", [*_each()], ids=lambda path: path.stem)
def test_the_rank_that_holds_up_the_job_is_named_with_its_line(path, tmp_path):
    about = header(path)
    with started(path, folder=tmp_path) as process:
        text, report = judged(process.pid, tmp_path)
    first = report["verdicts"][0]
    culprits = list(map(int, about["culprits"].split()))
    assert (first["kind"], sorted(first["culprits"])) == (about["verdict"], culprits), text
    assert {*first["culprits"], *first["held"]} == {0, 1, 2}
    assert text.startswith(f"✗ {about['verdict']} ({first['grade']}): ")
    if path.stem != "killed":  # it stands nowhere any more
        lines = {one["line"] for one in report["ranks"] if one["rank"] in culprits}
        (line, *_) = lines & marked(path, "culprit")
        assert f"{path.name}:{line}" in text
    if path.stem == "worker_under_lock":
        (line,) = marked(path, "worker")
        assert re.search(rf"2 processes of its own at \S+:{line}", " ".join(text.split()))
    # a path is not broken
    assert max(len(line) for line in text.splitlines() if "/" not in line) <= 80
    # what mp.spawn starts may meet in a file, whose name nothing tells
    assert ("missing" in text) == (path.stem == "spawned")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "attaches",
    [pytest.param(2, marks=pytest.mark.exhaustive), pytest.param(30, marks=pytest.mark.nightly)],
)
def test_a_job_that_moves_is_neither_accused_nor_changed(attaches, tmp_path):
    path, out, end = SCRIPTS / "moving" / "train.py", tmp_path / "out", tmp_path / "end"
    # torch is there before the first, and the processes that ask it are forks
    begin = ("-c", PREPARED.format(f"import torch; [run() for _ in range({attaches - 1})]"))
    found = []
    for watched in (True, False):
        # the second run goes as far as the first, with nobody who looks
        least = 40 * (len(found[0]) if found else 1)
        with out.open("w") as file, started(path, end, least, folder=tmp_path, out=file) as job:
            if watched:
                attach_when_begun(job.pid)
                done = attach(job.pid, "--wait", "0.2", begin=begin)
                assert done.returncode == 0, done.stdout + done.stderr
                said = " ".join(done.stdout.split())
                assert said.count("3 of 3 ranks read twice") == attaches
                assert "✗" not in done.stdout
            end.touch()
            assert job.wait() == 0
        found.append(re.findall(r"weights (\w+)", out.read_text()))
    attached, alone = found
    assert attached
    assert alone[: len(attached)] == attached


@pytest.mark.nightly
def test_what_cannot_be_read_is_said_and_the_rest_still_speaks(tmp_path):
    """Without py-spy there are no lines; with a recorder of another layout, stacks alone."""
    path = SCRIPTS / "hung" / "sleeps.py"
    without = "from headcount.script.attach import stacks; stacks.py_spy = lambda: None"
    unknown = (
        "from headcount.script.attach import own_torch, recorder_memory as memory;"
        " check = memory.check_layout;"
        " own_torch.check_layout = lambda: check(memory.Layout(number=96))"
    )
    with started(path, folder=tmp_path) as process:
        for change, missing in (
            (without, "lines: lines of the program need py-spy: pip install 'headcount[attach]'"),
            (unknown, "has a layout that is not known here"),
        ):
            text, report = judged(process.pid, tmp_path, begin=("-c", PREPARED.format(change)))
            first = report["verdicts"][0]
            assert (first["kind"], first["culprits"]) == ("never entered", [1]), text
            assert any(missing in one for one in report["missing"]), report["missing"]
            assert report["verdicts"][0]["grade"] == "supported"
        assert report["ranks"][1]["line"] in marked(path, "culprit")


@pytest.mark.nightly
def test_a_rank_or_its_worker_leads_to_the_job_and_a_folder_carries_it(tmp_path):
    path = SCRIPTS / "hung" / "worker_under_lock.py"
    with started(path, folder=tmp_path) as process:
        judged(process.pid, tmp_path)
        every = psutil.Process(process.pid).children(recursive=True)
        worker = next(one for one in every if one.ppid() in [other.pid for other in every])
        for pid in (worker.pid, worker.ppid()):
            done = attach(pid, "--write", tmp_path / "job")
            assert done.returncode == 3, done.stdout
            assert "rank 1 holds up ranks 0, 2" in done.stdout
    (tmp_path / "job" / "other.json").write_text("{")
    done = attach("--job", tmp_path / "job")
    assert done.returncode == 3
    assert "never entered (supported): rank 1 holds up ranks 0, 2" in done.stdout
    assert "other.json is no file of attach --write" in " ".join(done.stdout.split())


def test_a_torch_that_ends_before_its_answer_is_said():
    others = {*psutil.Process().children()}
    asked = OwnTorch()
    (child,) = {*psutil.Process().children()} - others
    child.kill()
    with pytest.raises(UnknownLayout, match="the process that asks torch has ended with -9"):
        asked.known_recorder()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([999_999_999], "there is no process 999999999"),
        ([os.getpid()], "no rank is at process"),
        (["nobody"], "a whole number from 1 on is needed, not 'nobody'"),
        ([], "give the number of a process of the job, or --job DIR"),
        (["1", "--store", "host"], "HOST:PORT is needed, not 'host'"),
        (
            ["--job", "/nowhere"],
            "/nowhere is no folder, such as attach --write leaves its files in",
        ),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(words, said):
    bare = dict.fromkeys(("RANK", "WORLD_SIZE"), "")
    done = attach(*words, **bare)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
