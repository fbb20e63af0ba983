"""Each rank draws random numbers of its own, real or simulated, and a seed repeats them."""

from __future__ import annotations

import gc
import random
import sys

import msgspec
import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn import functional as F

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


def attention():
    """Drops other entries in each of three calls, and hands its turn on between them."""
    entries = []
    for _ in range(3):
        kept = F.scaled_dot_product_attention(*[torch.ones(1, 8, 4)] * 3, dropout_p=0.5)
        entries.append(float(kept.sum()))
        dist.barrier()
    return entries


def recurrent():
    """Drops within one function of C++ for each kind, and hands its turn on after it."""
    outputs = []
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        torch.manual_seed(dist.get_rank())
        module = kind(2, 4, num_layers=2, dropout=0.5)
        for _ in range(2):
            dist.barrier()
            outputs.append(float(module(torch.ones(3, 2))[0].sum()))
    return outputs


def seeded_in_another_place():
    torch.random.manual_seed(100 + dist.get_rank())
    dist.barrier()
    return torch.rand(3).tolist()


DRAWING = [weights, of_python, of_numpy, permutation_after_messages]


@pytest.mark.parametrize("function", DRAWING)
@pytest.mark.parametrize("how", [run, simulate])
def test_ranks_draw_numbers_of_their_own_that_a_seed_repeats(how, function):
    first, again, other = (list(how(function, 3, seed=seed)) for seed in (7, 7, 8))
    assert len({tuple(numbers) for numbers in first}) == 3
    assert again == first
    assert not {tuple(numbers) for numbers in first} & {tuple(numbers) for numbers in other}


@pytest.mark.parametrize("function", [*DRAWING, attention, recurrent, seeded_in_another_place])
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


#: So that a rank can be told what to look for, and still not hold it.
MASK = (1 << 200) - 1


def finds(masked):
    """Look through all that can be reached for a seed, whole or in part, and say where it is."""
    wanted = masked ^ MASK
    parts = {wanted, wanted % 2**63, wanted % 2**64, wanted >> 64} - {0}
    places, frame = [], sys._getframe(1)
    while frame is not None:
        places += [(f"local {name}", value) for name, value in frame.f_locals.items()]
        frame = frame.f_back
    for held in gc.get_objects():
        places += [(type(held).__name__, held)]
    found = set()
    for where, held in places:
        inside = [held]
        if issubclass(type(held), dict):  # some objects of torch's warn of being looked at
            inside = [*held.values()]
        elif issubclass(type(held), (list, tuple)):
            inside = [*held]
        for one in [*inside]:
            if issubclass(type(one), msgspec.Struct):
                inside += [getattr(one, name, None) for name in one.__struct_fields__]
        if held is not parts and any(type(one) is int and one in parts for one in inside):
            found.add(where)
    return sorted(found)


@pytest.mark.parametrize("how", [run, simulate])
@pytest.mark.parametrize("seed", [987_654_321, 0xFEDCBA9876543210_0123456789ABCDEF])
def test_no_rank_can_read_the_seed_of_all(how, seed):
    """From it follow the inputs of an exercise, and so what the other ranks hold."""
    assert list(how(finds, 2, seed ^ MASK, seed=seed)) == [[], []]
    kept = [seed, 3]
    assert finds(seed ^ MASK)
    del kept
