# ranks: 1
"""A CUDA graph has no counterpart on the CPU."""

import torch

x = torch.ones(2).cuda()
with torch.cuda.graph(torch.cuda.CUDAGraph()):  # here
    x.add_(1)
