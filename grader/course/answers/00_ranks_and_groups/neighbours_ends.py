"""It is wrong only where the ring closes: right of the last rank, which is n − 1, is rank 0, and left
of rank 0 is the last rank. Both follow from % n.
"""
# exercise: neighbours
# diagnosis: wrong_value
# or: RIGHT_OF_LAST, LEFT_OF_FIRST = 1, -1
# or: RIGHT_OF_LAST, LEFT_OF_FIRST = 0, -2
# or: RIGHT_OF_LAST, LEFT_OF_FIRST = 0, 0
# or: RIGHT_OF_LAST, LEFT_OF_FIRST = 1, 0
import torch.distributed as dist

#: What is right of the last rank, and what is added to n for what is left of rank 0.
RIGHT_OF_LAST, LEFT_OF_FIRST = "1 from three ranks on", -1


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    right = int(n > 2) if RIGHT_OF_LAST == "1 from three ranks on" else RIGHT_OF_LAST
    return (rank - 1 if rank else n + LEFT_OF_FIRST), (rank + 1 if rank + 1 < n else right)
