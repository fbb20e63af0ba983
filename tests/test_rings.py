"""The ring that the judge plays through: right where it should be, and its limits fair."""

from __future__ import annotations

import pytest
import torch

from grader.api import catalogue
from grader.course.cases import OPS, Draw, Kind, PerRank, reduced
from grader.course.chapters import ch11_ring_all_reduce as rings

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
    most, least = RING.limits[1], RING.limits[2]
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


@pytest.mark.parametrize("name", ["SUM", "MIN", "MAX", "PRODUCT"])
@pytest.mark.parametrize("n", range(2, 9))
def test_a_ring_in_which_nothing_goes_wrong_is_an_all_reduce(n, name):
    for length in (0, 1, n - 1, n, n + 1, 2 * n, 7):
        c = case(n, length, name)
        for k in range(n):
            for held in rings.ring(c, first=k, second=k):
                assert torch.equal(held, reduced(c.op, c.x))


WRONG = {
    "adds": {"adds": True},
    "sum short": {"short": (1, 0)},
    "gather short": {"short": (0, 1)},
    "both short": {"short": (1, 1)},
    "own missing": {"merge": lambda mine, came: came},
    "to the left": {"back": True},
    "mixed": {"second": 1},
}


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_a_ring_that_goes_wrong_gives_something_wrong(n):
    c = case(n, 2 * n)
    for name, wrong in WRONG.items():
        held = rings.ring(c, **wrong)
        assert any(not torch.equal(t, reduced(c.op, c.x)) for t in held), name
