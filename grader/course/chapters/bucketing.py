"""Parameters in buckets, and how else people fill them."""

from collections.abc import Sequence

from grader.core.verdict import Diagnosis
from grader.course.cases import Case

__all__ = [
    "NOT_THOSE_BUCKETS",
    "PARAMETERS",
    "buckets",
    "closed_late",
    "first_parameter_first",
    "never_full",
    "of_sizes",
    "sorted_inside",
]


def buckets(sizes: Sequence[int], cap: int) -> list[list[int]]:
    """Last parameter first, as full as the cap allows."""
    buckets: list[list[int]] = []
    room = -1
    for index in reversed(range(len(sizes))):
        if not buckets or sizes[index] > room:
            buckets.append([])
            room = cap
        buckets[-1].append(index)
        room -= sizes[index]
    return buckets


def first_parameter_first(c: Case) -> list[list[list[int]]]:
    """The same, first parameter first."""
    mirrored = buckets(c.sizes[::-1], c.cap_bytes)
    return [[[len(c.sizes) - 1 - index for index in bucket] for bucket in mirrored]]


def sorted_inside(c: Case) -> list[list[list[int]]]:
    """The right buckets, and in each of them the first parameter first."""
    return [[sorted(bucket) for bucket in buckets(c.sizes, c.cap_bytes)]]


def closed_late(c: Case) -> list[list[list[int]]]:
    """A bucket ends only when its cap has been passed."""
    buckets: list[list[int]] = [[]]
    total = 0
    for index in reversed(range(len(c.sizes))):
        buckets[-1].append(index)
        total += c.sizes[index]
        if total > c.cap_bytes:
            buckets.append([])
            total = 0
    return [[bucket for bucket in buckets if bucket]]


def never_full(c: Case) -> list[list[list[int]]]:
    """A new bucket also where the cap would be met exactly."""
    return [buckets(c.sizes, c.cap_bytes - 1)]


def of_sizes(c: Case) -> list[list[list[int]]]:
    """The sizes in the place of the indices."""
    return [[[c.sizes[i] for i in bucket] for bucket in buckets(c.sizes, c.cap_bytes)]]


PARAMETERS: tuple[tuple[str, list[int], int], ...] = (
    ("two fit into one bucket", [40, 40, 40, 40], 100),
    ("sizes that differ", [400, 16, 64, 16, 1600, 40], 512),
    ("a bucket that is exactly full", [30, 70, 60, 40, 50, 50], 100),
    ("one larger than the cap", [8, 16, 5000, 16, 8], 64),
    ("all larger than the cap", [65, 66, 67], 64),
    ("everything in one", [100, 200, 300], 1 << 20),
    ("a cap of one byte", [4, 4, 4], 1),
    ("one parameter", [12], 12),
    ("empty parameters", [0, 64, 0, 65, 0], 64),
    ("no parameters", [], 25 << 20),
    ("a real network", [2359296, 3072, 1769472, 2304, 589824, 768, 38597376], 25 << 20),
)


#: What to say where calls, or their bytes, are not those of the right buckets.
NOT_THOSE_BUCKETS = dict.fromkeys(
    (
        Diagnosis.TOO_MANY_MESSAGES,
        Diagnosis.TOO_FEW_MESSAGES,
        Diagnosis.TOO_MANY_BYTES,
        Diagnosis.TOO_FEW_BYTES,
    ),
    "One all-reduce a step for each bucket of assign_buckets, over the distinct parameters that"
    " require a gradient. Tied weights are one parameter; sizes are bytes, p.numel() *"
    " p.element_size(); a bucket is reduced also where its gradients are None.",
)
