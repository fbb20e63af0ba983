"""The chain ends one rank too early: its last rank waits, and the one before it on the chain does
not send. Of n ranks only the last of the chain has nothing to pass on.
"""

# exercise: broadcast
# diagnosis: deadlock
# or: STEP = -1
import torch.distributed as dist

#: The side to which the chain runs.
STEP = 1


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) * STEP % n
    if place > 0:
        dist.recv(x, (rank - STEP) % n)
    if place < n - 2 or (place == 0 and n == 2):
        dist.send(x, (rank + STEP) % n)
