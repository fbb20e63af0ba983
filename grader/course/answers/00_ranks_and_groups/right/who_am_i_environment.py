# exercise: who_am_i
# diagnosis: none
# Launchers put both numbers into the environment, and so do our worlds.
import os

import torch


def who_am_i():
    return torch.tensor([int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])])
