"""The seed of a check repeats what ranks draw."""

from __future__ import annotations

import torch

from grader import check


def test_the_seed_of_a_check_repeats_what_ranks_draw():
    def broadcast(x, src):
        x.copy_(torch.rand(x.shape))

    first, again, other = (check(broadcast, seed=seed, world_sizes=(2,)) for seed in (1, 1, 2))
    assert first.verdict.message == again.verdict.message != other.verdict.message
