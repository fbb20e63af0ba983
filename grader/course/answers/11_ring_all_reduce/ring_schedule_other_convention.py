"""This schedule would work, but it is of the other convention, in which rank r begins with
chunk r and ends up owning chunk r + 1. Here rank r begins with chunk r − 1, so that it owns
chunk r: let s run from 1, not from 0.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(n - 1)]
    second = [((rank - s + 1) % n, (rank - s) % n) for s in range(n - 1)]
    return first + second
