# exercise: zigzag_split
# diagnosis: forbidden_call
# hint: Nothing is sent here
import torch
import torch.distributed as dist


def zigzag_split(tokens, n):
    dist.broadcast(torch.tensor([tokens]), 0)
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[2 * n - 1 - r] for r in range(n)]
