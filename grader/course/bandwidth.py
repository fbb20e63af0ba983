"""The arithmetic of bandwidth: bytes, seconds, and what links had to carry.

Sizes and factors are those of nccl-tests, so that numbers can be laid side by
side: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.  For
``scatter``, ``gather`` and ``send_recv``, which that page leaves out, they are
those of the programs themselves (``src/scatter.cu``, ``gather.cu``,
``sendrecv.cu``).

Everything is in bytes, seconds, and bytes a second; a gigabyte is 10⁹ bytes.
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

#: Where the whole tensor is made of n equal parts, one for each rank.
SHARED_OUT = frozenset({"all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"})


def factor(op: str, world_size: int) -> float:
    """What makes a bus bandwidth of an algorithm bandwidth."""
    a, b = FACTORS[op]
    return (a * world_size - b) / world_size


def algorithm_bandwidth(nbytes: int, seconds: float) -> float:
    """Bytes of the whole tensor a second."""
    return nbytes / seconds


def bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float:
    """Bytes a second that the busiest link had to carry at least.

    Args:
        op: a key of :data:`FACTORS`.
        nbytes: of the whole tensor: of all n parts together where it is made of
            parts, so of the input of a reduce-scatter and the output of an
            all-gather.
        seconds: of one call.
        world_size: n.
    """
    return algorithm_bandwidth(nbytes, seconds) * factor(op, world_size)


def share(op: str, nbytes: int, itemsize: int, world_size: int) -> tuple[int, int]:
    """What can be measured near a size: elements of one rank's part, bytes of the whole.

    There is at least one element; where the tensor is not made of parts, the
    part is the whole.
    """
    parts = world_size if op in SHARED_OUT else 1
    count = max(1, nbytes // (itemsize * parts))
    return count, count * itemsize * parts


def sweep(least: int, most: int, step: int) -> Iterator[int]:
    """Sizes from ``least`` to ``most``, each ``step`` times the one before."""
    while least <= most:
        yield least
        least *= step
