"""The ring turns the other way: what a rank receives comes from its left neighbour, so the
numbers of its chunks go down from step to step.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank + s) % n, (rank + s + 1) % n) for s in range(1, n)]
    second = [((rank + s - 1) % n, (rank + s) % n) for s in range(1, n)]
    return first + second
