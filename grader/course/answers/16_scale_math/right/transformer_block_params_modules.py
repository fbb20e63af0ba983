# exercise: transformer_block_params
# diagnosis: none
import torch
from torch import nn


def transformer_block_params(hidden, glu):
    up = 2 if glu else 1
    with torch.device("meta"):
        matrices = [nn.Linear(1, 3), nn.Linear(1, 1), nn.Linear(1, 4 * up), nn.Linear(4, 1)]
    return sum(m.weight.numel() for m in matrices) * hidden * hidden
