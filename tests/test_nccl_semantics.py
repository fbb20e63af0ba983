"""What could hang or fail on NCCL although it ends here: patterns of public issues, and their right
twins, on real and on simulated ranks."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from grader import run, simulate
from grader.launch.launchers import default_launcher

PATTERNS = sorted((Path(__file__).parent / "nccl_patterns").glob("*.py"))


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
