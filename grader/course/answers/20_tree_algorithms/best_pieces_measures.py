# exercise: best_pieces
# diagnosis: forbidden_call
# hint: follows from the arguments
import torch
import torch.distributed as dist


def best_pieces(n, nbytes, alpha, beta):
    x = torch.zeros(nbytes)
    dist.broadcast(x, 0)
    return 1
