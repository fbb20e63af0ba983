"""What a collective costs: its time in the alpha-beta model, and the bandwidth of a measured time.

Units are bytes, seconds, and bytes per second; a gigabyte is 10⁹ bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

__all__ = [
    "FACTORS",
    "SHARED_OUT",
    "algorithm_bandwidth",
    "bus_bandwidth",
    "crossover_bytes",
    "factor",
    "fit_alpha_beta",
    "message_seconds",
    "ring_all_reduce_seconds",
    "share",
    "sweep",
    "tree_all_reduce_seconds",
    "tree_levels",
]


# Time in the alpha-beta model. ----------------------------------------------------
#
# A message of S bytes takes α + β·S seconds: the latency α, however small the message is, and β
# for every byte.  A rank sends one message and receives one at a time, ranks do not disturb each
# other, and adding up costs nothing.
#
# In all functions there are ``n`` ranks, ``nbytes`` of the whole tensor, ``alpha`` in seconds,
# ``beta`` in seconds per byte.


def message_seconds(nbytes: float, alpha: float, beta: float) -> float:
    """Return the seconds that one message takes."""
    return alpha + beta * nbytes


def ring_all_reduce_seconds(n: int, nbytes: float, alpha: float, beta: float) -> float:
    """Return the seconds of a ring all-reduce: 2(n − 1) steps, in each a chunk of S/n bytes.

    (Patarasuk and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002.)
    """
    return 2 * (n - 1) * message_seconds(nbytes / n, alpha, beta)


def tree_levels(n: int) -> int:
    """Return ⌈log₂ n⌉, the rounds in which one rank can reach ``n``; exact for every n ≥ 1."""
    return (n - 1).bit_length()


def tree_all_reduce_seconds(n: int, nbytes: float, alpha: float, beta: float) -> float:
    """Return the seconds of a reduce and a broadcast on a binomial tree: 2⌈log₂ n⌉ whole messages.

    (Chan, Heimlich, Purkayastha and van de Geijn 2007, https://doi.org/10.1002/cpe.1206.)
    """
    return 2 * tree_levels(n) * message_seconds(nbytes, alpha, beta)


def crossover_bytes(n: int, alpha: float, beta: float) -> float:
    """Return the size in bytes from which the ring is no slower than the tree.

    It is 0 for up to three ranks, where the ring has no more steps than the tree, and
    where there is no latency.  Without a cost for bytes, the ring is never as fast from
    four ranks on, and the size is infinite.
    """
    levels = tree_levels(n)
    dearer = (n - 1 - levels) * alpha
    if dearer <= 0:
        return 0.0
    return dearer / ((levels - (n - 1) / n) * beta) if beta > 0 else math.inf


def fit_alpha_beta(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the α and β ≥ 0 with the least sum of squares of α + β·S − t.

    For every choice of which of the two are zero, the best value of the others is
    computed in exact fractions.  The result is the one that meets the conditions of
    Karush, Kuhn and Tucker: neither is negative, and where one is zero, increasing it
    would not help.

    Args:
        sizes: S, in bytes.
        seconds: t, one for each size.

    Raises:
        ValueError: there are not two sizes that differ, so that many would fit; or
            there are not as many times as sizes.
    """
    if len(sizes) != len(seconds):
        raise ValueError(f"as many times as sizes are needed, not {len(seconds)} for {len(sizes)}")
    if len(set(sizes)) < 2:
        raise ValueError("a fit needs two sizes that differ: one cannot tell α from β")
    s, t = [Fraction(size) for size in sizes], [Fraction(time) for time in seconds]
    count, total, squares = Fraction(len(s)), sum(s), sum(size * size for size in s)
    times = sum(t)
    products = sum(size * time for size, time in zip(s, t, strict=True))
    determinant = count * squares - total * total
    candidates = (
        (
            (squares * times - total * products) / determinant,
            (count * products - total * times) / determinant,
        ),
        (Fraction(0), products / squares),
        (times / count, Fraction(0)),
        (Fraction(0), Fraction(0)),
    )
    for alpha, beta in candidates:
        slopes = (
            alpha * count + beta * total - times,
            alpha * total + beta * squares - products,
        )
        values = (alpha, beta)
        if all(
            value >= 0 and (slope >= 0 if value == 0 else slope == 0)
            for value, slope in zip(values, slopes, strict=True)
        ):
            return float(alpha), float(beta)
    raise AssertionError("a convex problem has an optimum")


# Bandwidth: bytes, seconds, and what links had to carry. --------------------------
#
# Sizes and factors are those of nccl-tests, so that numbers can be compared:
# https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.  For ``scatter``, ``gather``
# and ``send_recv``, which that page leaves out, they are those of the programs themselves
# (``src/scatter.cu``, ``gather.cu``, ``sendrecv.cu``).

#: Transfers of the whole tensor that one link carries at least, as (a, b) of (a·n − b)/n.
#: With two phases it is 2(n − 1)/n; where the root's own link is the bottleneck, 1.
FACTORS: dict[str, tuple[int, int]] = {
    "all_reduce": (2, 2),
    "all_gather": (1, 1),
    "reduce_scatter": (1, 1),
    "all_to_all": (1, 1),
    "broadcast": (1, 0),
    "reduce": (1, 0),
    "scatter": (1, 1),
    "gather": (1, 1),
    "send_recv": (1, 0),
}

#: Collectives whose whole tensor is made of n equal parts, one for each rank.
SHARED_OUT = frozenset({"all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"})


def factor(op: str, world_size: int) -> float:
    """Return the ratio of bus bandwidth to algorithm bandwidth."""
    a, b = FACTORS[op]
    return (a * world_size - b) / world_size


def algorithm_bandwidth(nbytes: int, seconds: float) -> float:
    """Return bytes of the whole tensor per second."""
    return nbytes / seconds


def bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float:
    """Return the bytes per second that the busiest link had to carry at least.

    Args:
        op: a key of :data:`FACTORS`.
        nbytes: bytes of the whole tensor.  Where it is made of n parts, one for each
            rank, that is all parts together: the input of a reduce-scatter and the
            output of an all-gather.
        seconds: of one call.
        world_size: n.
    """
    return algorithm_bandwidth(nbytes, seconds) * factor(op, world_size)


def share(op: str, nbytes: int, itemsize: int, world_size: int) -> tuple[int, int]:
    """Return the nearest size that can be measured: elements of a rank's part, bytes of the whole.

    There is at least one element; where the tensor is not made of parts, the
    part is the whole.
    """
    parts = world_size if op in SHARED_OUT else 1
    count = max(1, nbytes // (itemsize * parts))
    return count, count * itemsize * parts


def sweep(least: int, most: int, step: int) -> Iterator[int]:
    """Yield sizes from ``least`` to ``most``, each ``step`` times the one before."""
    while least <= most:
        yield least
        least *= step
