"""``headcount.same`` through its doors: ``run``, ``simulate``, and a person's own script."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from headcount import run, same, simulate
from headcount.core.verdict import Diagnosis
from scripts.test_scripts import execute_text

DOORS = {
    "run": lambda *asked: run(*asked, may_fail=True, seed=1),
    "simulate": lambda *asked: simulate(*asked, may_fail=True, seed=1),
    "unrecorded": lambda *asked: simulate(*asked, may_fail=True, seed=1, record=False),
}


@pytest.fixture(params=DOORS)
def door(request):
    return DOORS[request.param]


def test_the_rank_that_holds_another_value_is_named(door):
    def train():
        dist.barrier()
        for step in range(3):
            drifted = (dist.get_rank(), step) == (2, 1)
            same({"lr": 0.5 if drifted else 0.1, "step": step}, "state")

    ran = door(train, 4)
    assert ran.failure.diagnosis is Diagnosis.REPLICAS_DIFFER
    assert "rank 2 holds another value of state['lr'] than ranks 0, 1 and 3" in ran.failure.message
    assert "the 2nd time" in ran.failure.message


def test_equal_values_and_those_of_groups_are_not_accused(door, capsys):
    def train():
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        pair = dist.get_rank() // 2
        same(torch.full((8,), float(pair)), group=pairs[pair])
        same(pair, group=pairs[0])
        same([torch.ones(3), {"a": 1}, {1, 2}, None])

    ran = door(train, 4)
    assert ran.failure is None
    assert "warning" not in capsys.readouterr().out


def test_a_value_that_only_some_compare_is_said(door, capsys):
    def train():
        if dist.get_rank():
            same(1, "loss")

    ran = door(train, 3)
    assert ran.failure is None
    assert "loss is not compared: ranks 1 and 2 call headcount.same" in capsys.readouterr().out


def test_a_group_in_the_place_of_the_name_is_named(door):
    def train():
        same(1, dist.new_group())

    message = door(train, 2).failure.message
    assert "same takes a name second, and this is a" in message
    assert message.endswith("give the group as same(value, group=group)")


@pytest.mark.parametrize("drifts", [False, True])
def test_a_script_ends_where_its_ranks_differ(tmp_path, drifts):
    text = (
        "import headcount, torch\n"
        "import torch.distributed as dist\n"
        "headcount.same(3)  # before there are ranks\n"
        "dist.init_process_group('gloo')\n"
        "torch.manual_seed(dist.get_rank() * DRIFTS)\n"
        "model = torch.nn.Linear(3, 3)\n"
        "headcount.same(model, 'model')\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
        "headcount.same(3)\n"
    ).replace("DRIFTS", str(int(drifts)))
    ran, printed = execute_text(text, tmp_path, 3)
    assert ran.status() == (3 if drifts else 0), printed
    if drifts:
        assert ran.failure.message.startswith(
            "model['weight'] differs between ranks 0, 1 and 2 at train.py:7 (float32 [3, 3], norm"
        )


def test_outside_of_headcount_it_does_nothing():
    same(object())
