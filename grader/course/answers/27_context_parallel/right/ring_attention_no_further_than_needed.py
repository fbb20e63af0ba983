# exercise: ring_attention
# diagnosis: none
# With a mask, a block goes only to the ranks that see it.
import torch
import torch.distributed as dist


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    coming = rank if causal else n - 1
    going = coming + 1 if causal and rank < n - 1 else coming
    if causal and rank == n - 1:
        going = 0
    block = torch.cat([k, v])
    numerator, denominator, top = 0, 0, None
    for s in range(coming + 1):
        sending = dist.isend(block, right) if s < going and n > 1 else None
        k, v = block.chunk(2)
        scores = q @ k.transpose(1, 2) * q.size(2) ** -0.5
        if causal and s == 0:
            scores += torch.full_like(scores, float("-inf")).triu(1)
        largest = scores.amax(2, keepdim=True)
        new = largest if top is None else torch.max(top, largest)
        p = (scores - new).exp()
        old = 0 if top is None else (top - new).exp()
        numerator = numerator * old + p @ v
        denominator = denominator * old + p.sum(2, keepdim=True)
        top = new
        came = None
        if s < coming:
            came = torch.empty_like(block)
            dist.recv(came, left)
        if sending is not None:
            sending.wait()
        block = came
    return numerator / denominator
