"""Distributed functions in tests, by ``assert_no_hang`` and by pytest's mark."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

from headcount import assert_no_hang
from headcount.launch.launchers import default_launcher
from support.worlds import line_in


def total(of):
    found = torch.tensor([of])
    dist.all_reduce(found)
    return int(found)


def test_a_function_that_ends_returns_what_its_ranks_do():
    assert assert_no_hang(total, 2, ranks=3) == [6, 6, 6]
    default_launcher().settle()


def test_a_function_that_hangs_says_which_rank_waits_and_where():
    def one_sided():
        if dist.get_rank() == 1:
            dist.recv(torch.zeros(1), 0)

    line = line_in(one_sided, "recv")
    with pytest.raises(AssertionError, match=rf"(?s)on 2 ranks: .*rank 1 .*line {line}"):
        assert_no_hang(one_sided)
    default_launcher().settle()


TESTS = """
import pytest
import torch
import torch.distributed as dist


@pytest.fixture
def whole():
    return 4


@pytest.mark.ranks(4)
def test_right(whole):
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total == whole


@pytest.mark.ranks(2)
def test_wrong():
    if dist.get_rank() == 0:
        dist.barrier()


@pytest.mark.ranks(2, check="replicas")
def test_drifting():
    parameter = torch.nn.Parameter(torch.ones(1) * dist.get_rank())
    optimizer = torch.optim.SGD([parameter], 0.1)
    parameter.sum().backward()
    dist.all_reduce(parameter.grad)
    optimizer.step()


def test_without_ranks():
    assert not dist.is_initialized()
"""


@pytest.mark.exhaustive
def test_pytest_runs_a_marked_test_on_ranks(tmp_path):
    (tmp_path / "test_ranks.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "headcount.pytest_plugin",
         "-p", "no:cacheprovider",
         "--strict-markers", "-q", str(tmp_path / "test_ranks.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "rank 0 waits in barrier at line 22 for rank 1" in " ".join(done.stdout.split())
    assert "differs between ranks 0 and 1 before the first step of SGD" in " ".join(
        done.stdout.split()
    )
    assert "headcount/" not in done.stdout
