# exercise: ring_schedule
# diagnosis: none
from collections import deque


def ring_schedule(rank, world_size):
    if world_size == 1:
        return []
    chunks = deque(range(world_size))
    chunks.rotate(-rank)  # chunks[0] is the rank's own, chunks[-1] the one before
    before = [chunks[-s] for s in range(1, world_size)]
    sums = zip(before, [*before[1:], rank], strict=True)
    chunks.rotate(-1)
    before = [chunks[-s] for s in range(1, world_size)]
    copies = zip(before, [*before[1:], chunks[0]], strict=True)
    return (*sums, *copies)
