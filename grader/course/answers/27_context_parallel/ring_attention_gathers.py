# exercise: ring_attention
# diagnosis: memory_limit
# hint: gathered first
# An all-gather around the ring, and attention at the end.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    blocks = torch.empty(n, 2, *k.shape, dtype=k.dtype)
    blocks[rank] = torch.stack([k, v])
    for s in range(n - 1):
        request = dist.isend(blocks[(rank - s) % n], (rank + 1) % n)
        dist.recv(blocks[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    keys, values = (torch.cat(list(x), dim=1) for x in blocks.unbind(1))
    tokens = q.shape[1]
    seen = torch.ones(n * tokens, n * tokens, dtype=torch.bool)
    if causal:
        seen = seen.tril()
    mine = seen[rank * tokens : (rank + 1) * tokens]
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mine)
