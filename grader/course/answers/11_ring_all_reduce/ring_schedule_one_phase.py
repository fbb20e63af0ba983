"""Only the reduce-scatter is here. After it every rank has one finished chunk; the all-gather
takes n − 1 more steps.
"""
# exercise: ring_schedule
# diagnosis: wrong_shape
def ring_schedule(rank, world_size):
    return [((rank - s) % world_size, (rank - s - 1) % world_size) for s in range(1, world_size)]
