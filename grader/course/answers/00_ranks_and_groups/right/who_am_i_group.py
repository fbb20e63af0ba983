# exercise: who_am_i
# diagnosis: none
# The group itself knows both numbers; the result is not contiguous.
import torch
from torch.distributed import group


def who_am_i():
    world = group.WORLD
    pairs = torch.tensor([[world.rank(), 0], [world.size(), 0]])
    return pairs[:, 0]
