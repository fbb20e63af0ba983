"""The phases are in the wrong order: the reduce-scatter comes first. Before it there is nothing
complete to gather.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    n = world_size
    gather = [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
    reduce = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    return gather + reduce
