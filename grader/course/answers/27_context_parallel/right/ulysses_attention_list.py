# exercise: ulysses_attention
# diagnosis: none
# The all-to-all of lists, and torch's own attention.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def exchange(pieces):
    came = [torch.empty_like(piece) for piece in pieces]
    dist.all_to_all(came, pieces)
    return came


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    q, k, v = (
        torch.cat(exchange([part.contiguous() for part in x.chunk(n, 0)]), 1) for x in (q, k, v)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return torch.cat(exchange([part.contiguous() for part in out.chunk(n, 1)]), 0)
