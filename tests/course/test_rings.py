"""The ring that the judge plays through: right where it should be, and its limits fair."""

from __future__ import annotations

import pytest
import torch

from grader.api import catalogue
from grader.course.chapters import ch11_ring_all_reduce as rings
from grader.exercise.cases import OPS, Draw, Kind, PerRank

RING = catalogue()["ring_all_reduce"]


def case(n, length, name="SUM"):
    draw = Draw(1, "rings", n)
    draw.case("the first, where digits recur")
    x = draw.per_rank(Kind(torch.int64, (length,)), name)
    return draw.case(f"{name} of {length}", x=PerRank(x), op=OPS[name])


def tensor_split(length, n):
    return [len(part) for part in torch.empty(length).tensor_split(n)]


def padded(length, n):
    return [-(-length // n)] * n


def remainder_last(length, n):
    return [length // n] * (n - 1) + [length // n + length % n]


def full_first(length, n):
    size = -(-length // n)
    return [max(0, min(size, length - i * size)) for i in range(n)]


@pytest.mark.parametrize("cut", [tensor_split, padded, remainder_last, full_first])
@pytest.mark.parametrize("n", range(1, 9))
def test_the_limits_on_what_is_sent_hold_for_every_right_way_to_cut(n, cut):
    most, least = RING.traffic.limits[1], RING.traffic.limits[2]
    assert (most.relation, least.relation) == ("≤", "≥")
    for length in [*range(41), 1000]:
        sizes, c = cut(length, n), case(n, length)
        for convention in range(n):
            sent = [sum(sizes[out] for out, _ in rings.schedule(r, n, convention)) for r in c.ranks]
            assert least.asked(c) <= max(sent) <= most.asked(c), (length, convention)


@pytest.mark.parametrize("n", range(1, 9))
def test_what_a_rank_receives_is_what_its_left_neighbour_sends(n):
    for convention in range(n):
        plans = [rings.schedule(r, n, convention) for r in range(n)]
        for r, plan in enumerate(plans):
            assert [into for _, into in plan] == [out for out, _ in plans[r - 1]]
            assert [out for out, _ in plan[1:]] == [into for _, into in plan[:-1]]
