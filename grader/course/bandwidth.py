"""The arithmetic of bandwidth: bytes, seconds, and what links had to carry.

Sizes and factors are those of nccl-tests, so that numbers can be compared:
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.  For
``scatter``, ``gather`` and ``send_recv``, which that page leaves out, they are
those of the programs themselves (``src/scatter.cu``, ``gather.cu``,
``sendrecv.cu``).

Units are bytes, seconds, and bytes per second; a gigabyte is 10⁹ bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "FACTORS",
    "SHARED_OUT",
    "algorithm_bandwidth",
    "bus_bandwidth",
    "factor",
    "share",
    "sweep",
]

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
