"""These are the chunks without the modulo: some are negative. Take each one % world_size; in
Python the result is never negative.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
def ring_schedule(rank, world_size):
    return [(rank - 1 - s, rank - 2 - s) for s in range(2 * (world_size - 1))]
