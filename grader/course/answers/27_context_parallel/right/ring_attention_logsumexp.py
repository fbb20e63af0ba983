# exercise: ring_attention
# diagnosis: none
# Keeps a finished result and its logsumexp, and merges them block by block.
import torch
import torch.distributed as dist


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    places = torch.arange(q.shape[1])
    out, lse = None, None
    for s in range(n):
        owner = (rank - s) % n
        requests = []
        if s < n - 1:
            k_next, v_next = torch.empty_like(k), torch.empty_like(v)
            requests = [
                dist.isend(k, (rank + 1) % n),
                dist.isend(v, (rank + 1) % n),
                dist.irecv(k_next, (rank - 1) % n),
                dist.irecv(v_next, (rank - 1) % n),
            ]
        if not causal or owner <= rank:
            scores = torch.einsum("hqd,hkd->hqk", q, k) / q.shape[-1] ** 0.5
            if causal and owner == rank:
                scores = scores.masked_fill(places[:, None] < places, float("-inf"))
            block_lse = torch.logsumexp(scores, -1, keepdim=True)
            block_out = torch.softmax(scores, -1) @ v
            if out is None:
                out, lse = block_out, block_lse
            else:
                both = torch.logaddexp(lse, block_lse)
                out = out * (lse - both).exp() + block_out * (block_lse - both).exp()
                lse = both
        for request in requests:
            request.wait()
        if s < n - 1:
            k, v = k_next, v_next
    return out
