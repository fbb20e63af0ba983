"""Distributed functions in tests, by ``assert_no_hang`` and by pytest's mark."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from headcount import assert_no_hang
from headcount.launch.launchers import default_launcher
from headcount.pytest_plugin import pytest_pyfunc_call
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
    with pytest.raises(
        AssertionError, match=rf"(?s)on 2 ranks: .*rank 1 .*test_pytest_plugin\.py:{line}"
    ):
        assert_no_hang(one_sided)
    default_launcher().settle()


MODULE = """
import torch.distributed as dist


def one_sided():
    if dist.get_rank() == 1:
        dist.barrier()
"""

TESTS = """
import pytest
import step
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


@pytest.mark.ranks(2)
def test_that_one_rank_skips():
    if dist.get_rank() == 1:
        pytest.skip("no GPU here")


@pytest.mark.ranks(2)
def test_that_is_not_right_yet():
    pytest.xfail("not yet")


@pytest.mark.ranks(2)
def test_what_makes_its_own_group():
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_what_stands_in_a_module():
    step.one_sided()


def test_without_ranks():
    assert not dist.is_initialized()
"""


@pytest.mark.exhaustive
def test_pytest_runs_a_marked_test_on_ranks(tmp_path):
    (tmp_path / "test_ranks.py").write_text(TESTS)
    (tmp_path / "step.py").write_text(MODULE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "headcount.pytest_plugin",
         "-p", "no:cacheprovider",
         "--strict-markers", "-q", "-rs", "test_ranks.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert "3 failed, 3 passed, 1 skipped, 1 xfailed" in said, done.stdout
    assert "rank 0 waits in barrier at test_ranks.py:23 for rank 1" in said
    assert "rank 1 waits in barrier at step.py:7 for rank 0" in said
    assert "differs between ranks 0 and 1 before the first step of SGD" in said
    assert "no GPU here" in said
    assert "headcount/" not in done.stdout


def outcome_of(*args, test=lambda: None, **kwargs):
    mark = pytest.Mark("ranks", args, kwargs, _ispytest=True)
    item = SimpleNamespace(get_closest_marker=lambda name: mark, obj=test, funcargs={})
    return pytest_pyfunc_call(item)


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ([], {}, "the mark takes a number of ranks, and seconds, seed, semantics, check by name"),
        ([2, 3], {}, "as in @pytest.mark.ranks(4, seconds=60); this is Mark(name='ranks', args=(2"),
        ([2], {"n": 2}, "args=(2,), kwargs={'n': 2})"),
        ([2], {"chek": "x"}, "kwargs={'chek': 'x'})"),
        (["2"], {}, "a world has 1 to 64 ranks, not '2'"),
    ],
)
def test_a_mark_that_says_something_else_fails_its_test_in_a_line(args, kwargs, said):
    with pytest.raises(pytest.fail.Exception, match=re.escape(said)) as caught:
        outcome_of(*args, **kwargs)
    assert not caught.value.pytrace


def test_a_mark_may_name_the_number_and_leaves_what_is_async_to_pytest():
    async def waits():
        raise AssertionError

    assert outcome_of(n=1) is True
    assert outcome_of(1, test=waits) is None
