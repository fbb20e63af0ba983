# exercise: ulysses_attention
# diagnosis: none
# An all-to-all of one's own, out of isend and recv, with peers that rotate.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [torch.empty_like(chunk) for chunk in chunks]
    result[rank].copy_(chunks[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[dst].contiguous(), dst)
        dist.recv(result[src], src)
        request.wait()
    return result


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    q, k, v = (torch.cat(all_to_all(list(x.split(len(x) // n))), dim=1) for x in (q, k, v))
    weights = (q @ k.mT) * q.shape[-1] ** -0.5
    if causal:
        length = q.shape[1]
        weights += torch.full((length, length), float("-inf"), dtype=q.dtype).triu(1)
    out = weights.softmax(dim=-1) @ v
    pieces = [part.contiguous() for part in out.split(out.shape[1] // n, dim=1)]
    return torch.cat(all_to_all(pieces))
