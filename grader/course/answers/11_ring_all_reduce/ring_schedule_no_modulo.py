"""These are the chunks without the modulo: some are negative. Take each one % world_size; in
Python the result is never negative.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
# As indices of a Python list, most of these would even work.


def ring_schedule(rank, world_size):
    pairs = [(rank - s, rank - s - 1) for s in range(1, world_size)]
    pairs += [(rank - s + 1, rank - s) for s in range(1, world_size)]
    return pairs
