"""Cost formulas, against real messages that are counted, and against other derivations."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from grader.api import run
from grader.course import costs

RANKS = st.integers(1, 5000)
POSITIVE = st.floats(1e-9, 1e-2)


def ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(n)
    buffer = torch.empty_like(chunks[0])
    for step in range(2 * (n - 1)):
        request = dist.isend(chunks[(rank - step - 1) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()


def tree(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = [2**i for i in range(n) if 2**i < n]
    for s in steps:
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(x, rank + s)
    for s in reversed(steps):
        if rank % (2 * s) == 0 and rank + s < n:
            dist.send(x, rank + s)
        elif rank % (2 * s) == s:
            dist.recv(x, rank - s)


def counted(algorithm, n, alpha, beta):
    """Seconds, from the rounds and the sizes of the messages that were really sent."""
    trace = run(algorithm, n, torch.zeros(120)).trace
    largest = {}
    for message in trace.messages:
        largest[message.start] = max(largest.get(message.start, 0), message.nbytes)
    return sum(alpha + beta * nbytes for nbytes in largest.values())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_a_formula_is_what_real_messages_cost(algorithm, n):
    formula = getattr(costs, f"{algorithm}_all_reduce_seconds")
    program = {"ring": ring, "tree": tree}[algorithm]
    for alpha, beta in ((1.0, 0.0), (0.0, 1.0), (3.0, 0.25)):
        assert counted(program, n, alpha, beta) == pytest.approx(formula(n, 480, alpha, beta))


@pytest.mark.parametrize("power", [*range(64), 200])
def test_levels_are_exact(power):
    n = 2**power
    assert costs.tree_levels(n) == power
    assert costs.tree_levels(n + 1) == power + 1
    assert costs.tree_levels(max(n - 1, 1)) == (power if power > 1 else 0)


@given(RANKS, POSITIVE, POSITIVE)
def test_the_crossing_is_where_the_costs_meet(n, alpha, beta):
    size = costs.crossover_bytes(n, alpha, beta)
    at = [f(n, size, alpha, beta) for f in FORMULAS]
    if n > 3:
        assert size > 0
        assert at[0] == pytest.approx(at[1])
    else:
        assert size == 0


FORMULAS = (costs.ring_all_reduce_seconds, costs.tree_all_reduce_seconds)


@given(RANKS, POSITIVE | st.just(0.0), POSITIVE | st.just(0.0), st.integers(0, 10**12))
def test_from_the_crossing_on_the_ring_is_no_slower(n, alpha, beta, nbytes):
    a, b = Fraction(alpha), Fraction(beta)
    ring = 2 * (n - 1) * (a + Fraction(nbytes, n) * b)
    tree = 2 * costs.tree_levels(n) * (a + nbytes * b)
    size = costs.crossover_bytes(n, alpha, beta)
    if nbytes > size * (1 + 1e-12) or size == 0:
        assert ring <= tree
    elif nbytes < size * (1 - 1e-12) or size == math.inf:
        assert ring > tree


def loss(alpha, beta, sizes, seconds):
    """The sum of squares, exactly."""
    a, b = Fraction(alpha), Fraction(beta)
    pairs = zip(sizes, seconds, strict=True)
    return sum((a + b * Fraction(s) - Fraction(t)) ** 2 for s, t in pairs)


POINTS = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1)), min_size=2, max_size=8).filter(
    lambda points: len({size for size, _ in points}) > 1
)


@given(POINTS)
def test_nothing_allowed_near_a_fit_is_better(points):
    sizes, seconds = zip(*points, strict=True)
    alpha, beta = costs.fit_alpha_beta(sizes, seconds)
    assert min(alpha, beta) >= 0
    best = loss(alpha, beta, sizes, seconds)
    for da in (-1e-3, 0.0, 1e-3):
        for db in (-1e-8, 0.0, 1e-8):
            other = max(alpha + da, 0.0), max(beta + db, 0.0)
            if other != (alpha, beta):  # the fit is rounded to floats, in its last bit
                assert loss(*other, sizes, seconds) >= best * (1 - Fraction(1, 10**9)) or (
                    best < 1e-24
                )


@given(POSITIVE, POSITIVE)
def test_a_fit_finds_what_times_were_made_from(alpha, beta):
    sizes = [0, 1, 10, 1000, 10**6]
    found = costs.fit_alpha_beta(sizes, [alpha + beta * size for size in sizes])
    assert found[1] == pytest.approx(beta, rel=1e-9)
    assert found[0] == pytest.approx(alpha, abs=1e-9 * (alpha + beta * 10**6))


@pytest.mark.parametrize(
    "seconds, expected",
    [
        ([1.0, 2.0, 3.0], (0.0, 1.0)),
        ([0.0, 1.0, 3.0], (0.0, 11 / 14)),  # the best line begins at −5/3
        ([3.0, 2.0, 1.0], (2.0, 0.0)),
        ([0.0, 0.0, 0.0], (0.0, 0.0)),
        ([2.0, 2.0, 2.0], (2.0, 0.0)),
    ],
)
def test_fits_worked_out_by_hand(seconds, expected):
    assert costs.fit_alpha_beta([1, 2, 3], seconds) == pytest.approx(expected)


def test_a_fit_agrees_with_torchs_where_no_bound_is_met():
    sizes = [1000 * k for k in range(1, 9)]
    seconds = [1e-4 + 2e-8 * size + 1e-6 * (size // 1000 % 3) for size in sizes]
    design = torch.tensor([[1.0, size] for size in sizes], dtype=torch.float64)
    right = torch.tensor(seconds, dtype=torch.float64)[:, None]
    solved = torch.linalg.lstsq(design, right).solution.flatten().tolist()
    assert costs.fit_alpha_beta(sizes, seconds) == pytest.approx(solved, rel=1e-6)


@pytest.mark.parametrize("sizes, seconds", [([8], [1.0]), ([8, 8], [1.0, 2.0]), ([], [])])
def test_one_size_is_no_fit(sizes, seconds):
    with pytest.raises(ValueError, match="two sizes that differ"):
        costs.fit_alpha_beta(sizes, seconds)


def test_a_time_for_every_size():
    with pytest.raises(ValueError, match="not 1 for 2"):
        costs.fit_alpha_beta([1, 2], [1.0])
