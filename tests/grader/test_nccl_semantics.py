"""What could hang or fail on NCCL although it ends here: patterns of public issues, and their right
twins, on real and on simulated ranks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from benchmarks.hangs.catalogue import every_pair
from grader import assert_no_hang, check, run, simulate
from grader.course.chapters import discover
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.errors import RequestError
from headcount.core.semantics import Semantics
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.trace.nccl_semantics import nccl_fault

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = sorted((ROOT / "tests" / "nccl_patterns").glob("*.py"))


class Pattern:
    """A program, with what its header says."""

    def __init__(self, path):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.program = module.program
        text = path.read_text()
        header = dict(re.findall(r"^# (ranks|nccl|says): (.*)$", text, re.M))
        self.ranks = int(header["ranks"])
        self.expected, self.says = header["nccl"], header.get("says", "")
        lines = text.splitlines()
        self.named = {i for i, line in enumerate(lines, 1) if line.endswith("# named")}


def named(failure):
    sites = [failure.site, *(wait.site for wait in failure.waits)]
    return {site.line for site in sites}


def require_expected(failure, pattern):
    if pattern.expected == "ends":
        assert failure is None, failure
        return
    assert failure is not None
    assert failure.diagnosis == pattern.expected
    assert failure.message.startswith("under NCCL's rules")
    assert pattern.says in " ".join((failure.message, *failure.detail))
    assert named(failure) == pattern.named


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_a_pattern_gets_its_finding_of_a_run_that_ends_on_gloo(path):
    pattern = Pattern(path)
    ran = run(pattern.program, pattern.ranks, semantics="nccl", may_fail=True)
    require_expected(ran.failure, pattern)
    default_launcher().settle()


@pytest.mark.parametrize(
    "path", [one for one in PATTERNS if "thread" not in one.stem], ids=lambda path: path.stem
)
def test_simulated_ranks_get_the_same_finding(path):
    pattern = Pattern(path)
    simulate(pattern.program, pattern.ranks, semantics="gloo")  # raises if it does not end
    ran = simulate(pattern.program, pattern.ranks, semantics="nccl", may_fail=True)
    require_expected(ran.failure, pattern)


# Where semantics are chosen. ------------------------------------------------------


@pytest.mark.exhaustive
def test_the_page_counts_the_programs_that_are_right_on_gloo_alone():
    accused = Counter()
    for pair in every_pair():
        right = pair.right
        found = run(right.function, right.ranks, semantics="nccl", may_fail=True)
        accused[right.error_class] += found.failure is not None
    # what several threads do is another order of calls in each run
    assert 3 <= accused.pop("threads") <= 6
    text = " ".join((ROOT / "headcount" / "docs" / "nccl.md").read_text().split())
    assert f"holds {len(every_pair())} correct programs" in text
    assert f"{accused.total()} in every run, and six with several threads" in text


def swap():
    send = dist.isend(torch.ones(1), 1 - dist.get_rank())
    dist.recv(torch.empty(1), 1 - dist.get_rank())
    send.wait()


def grader(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "grader", *words], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "semantics", "diagnosis"),
    [
        ("shift_isend", Semantics.GLOO, None),
        ("shift_isend", Semantics.NCCL, Diagnosis.DEADLOCK),
        ("shift_batch", Semantics.NCCL, None),
    ],
)
def test_a_check_fails_a_right_answer_that_could_hang(answer, semantics, diagnosis):
    path = ROOT / "grader/course/answers/01_point_to_point/right" / f"{answer}.py"
    exercises = discover()
    settings = Settings(1, world_sizes=(2,), semantics=semantics)
    submission = Submission.from_file(path, exercises)
    verdict = Judge(default_launcher(), settings).judge(exercises["shift"], submission)
    assert verdict.diagnosis is diagnosis
    if diagnosis:
        failed = next(case for case in verdict.cases if not case.passed)
        assert failed.message.startswith("under NCCL's rules this can hang")
        assert failed.cycle == (0, 1)
        # and not the exercise's advice, which is on how to end the run that has ended
        assert verdict.hint == Diagnosis.DEADLOCK.advice


def test_a_script_that_ends_well_is_a_fault_of_communication(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('nccl')\n"
        "other = 1 - dist.get_rank()\n"
        "send = dist.isend(torch.ones(1).cuda(), other)\n"
        "dist.recv(torch.empty(1).cuda(), other)\n"
        "send.wait()\n"
    )
    assert grader(tmp_path, "run", "train.py").returncode == 0
    done = grader(tmp_path, "run", "--semantics", "nccl", "--json", "report.json", "train.py")
    assert done.returncode == 3
    assert done.stderr.startswith("✗ ended well after")
    assert "rank 0 waits to send to rank 1 at train.py:5" in " ".join(done.stderr.split())
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["ok"]
    assert report["failure"]["message"].startswith("under NCCL's rules")
    assert {wait["line"] for wait in report["failure"]["waits"]} == {5}


@pytest.mark.parametrize(
    ("sends", "receives", "finding"),
    [
        ("dist.send(x, 1)", "dist.recv(x)", "it receives from any rank, which NCCL cannot"),
        (
            "a = dist.isend(x, 1, tag=1); b = dist.isend(x, 1, tag=2); a.wait(); b.wait()",
            "b = dist.irecv(x, 0, tag=2); a = dist.irecv(-x, 0, tag=1); a.wait(); b.wait()",
            "which wants another message",
        ),
    ],
)
def test_what_nccl_refuses_or_pairs_wrongly_is_one_as_well(tmp_path, sends, receives, finding):
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('nccl')\n"
        "x = torch.ones(1)\n"
        f"if dist.get_rank() == 0:\n    {sends}\n"
        f"else:\n    {receives}\n"
    )
    done = grader(tmp_path, "run", "--semantics", "nccl", "train.py")
    assert finding in " ".join(done.stderr.split())
    assert done.returncode == 3


def test_a_test_fails_with_the_finding():
    assert assert_no_hang(swap) == [None, None]
    with pytest.raises(AssertionError, match=r"(?s)on 2 ranks: .*under NCCL's rules"):
        assert_no_hang(swap, semantics="nccl")
    default_launcher().settle()


def test_other_semantics_are_refused():
    for ask in (run, simulate):
        with pytest.raises(RequestError, match="semantics is 'gloo' or 'nccl', not 'mpi'"):
            ask(swap, 2, semantics="mpi")
    with pytest.raises(RequestError, match="semantics is"):
        check(swap, semantics="mpi")
    done = grader(ROOT, "run", "--semantics", "mpi", "train.py")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_simulation_without_a_record_is_not_judged():
    with pytest.raises(RequestError, match="there is none of this run"):
        simulate(swap, 2, record=False, semantics="nccl")


def test_a_run_with_a_mistake_of_its_own_is_not_judged():
    def one_sided():
        if dist.get_rank() == 0:
            dist.isend(torch.ones(1), 1)

    ran = run(one_sided, 2, may_fail=True)
    assert ran.failure.diagnosis is Diagnosis.UNMATCHED_MESSAGE
    assert nccl_fault(ran.trace) is None
    default_launcher().settle()
