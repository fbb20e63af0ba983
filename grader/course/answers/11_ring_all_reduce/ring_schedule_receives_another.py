"""Each chunk to send is right, and the chunk to receive is not. The left neighbour is one chunk
behind: while rank r sends chunk c, its left neighbour sends chunk c − 1.
"""
# exercise: ring_schedule
# diagnosis: wrong_value
# or: BEHIND = 2

BEHIND = 0


def ring_schedule(rank, world_size):
    n = world_size
    sent = [(rank - s) % n for s in range(1, n)] + [(rank - s + 1) % n for s in range(1, n)]
    return [(chunk, (chunk - BEHIND) % n) for chunk in sent]
