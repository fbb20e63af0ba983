"""Each rank draws random numbers of its own, real or simulated, and a seed repeats them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.distributed as dist

from headcount import run, simulate


def weights():
    return torch.nn.Linear(2, 1).weight.flatten().tolist()


def of_python():
    return [random.random(), random.randrange(10**9), random.Random(3).random()]


def of_numpy():
    return [float(np.random.rand()), int(np.random.randint(10**9))]


def permutation_after_messages():
    """Draws before and after ranks take turns."""
    first = torch.randn(2)
    dist.all_reduce(torch.ones(1))
    return [*first.tolist(), *torch.randperm(1000)[:2].tolist()]


def seeded():
    torch.manual_seed(5)
    return torch.rand(3).tolist()


DRAWING = [weights, of_python, of_numpy, permutation_after_messages]


@pytest.mark.parametrize("function", DRAWING)
@pytest.mark.parametrize("how", [run, simulate])
def test_ranks_draw_numbers_of_their_own_that_a_seed_repeats(how, function):
    first, again, other = (list(how(function, 3, seed=seed)) for seed in (7, 7, 8))
    assert len({tuple(numbers) for numbers in first}) == 3
    assert again == first
    assert not {tuple(numbers) for numbers in first} & {tuple(numbers) for numbers in other}


@pytest.mark.parametrize("function", DRAWING)
def test_a_simulated_rank_draws_what_a_real_one_does(function):
    assert list(simulate(function, 3, seed=7)) == list(run(function, 3, seed=7))


@pytest.mark.parametrize("how", [run, simulate])
def test_a_program_that_seeds_torch_draws_the_same_everywhere(how, capsys):
    first, second = how(seeded, 2)
    assert first == second
    assert "seed=" not in capsys.readouterr().out


@pytest.mark.parametrize("how", [run, simulate])
def test_it_is_said_how_to_repeat_numbers_that_no_seed_gave(how, capsys):
    drawn = how(weights, 2)
    assert f"seed={drawn.seed} repeats them" in capsys.readouterr().out
    assert list(how(weights, 2, seed=drawn.seed)) == list(drawn)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("how", [run, simulate])
def test_a_seed_may_be_as_long_as_one_that_is_drawn_for_a_class(how):
    first, second = how(weights, 2, seed=2**250 + 1)
    assert first != second
    assert list(how(weights, 2, seed=2**250 + 1)) == [first, second]
