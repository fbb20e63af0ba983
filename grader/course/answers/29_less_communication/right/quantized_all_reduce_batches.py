# exercise: quantized_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist
from torch.distributed import P2POp, batch_isend_irecv


def quantize(chunk):
    """int8 numbers, and their scale in a tensor of its own."""
    scale = chunk.abs().amax() / 127 if chunk.numel() else torch.zeros(())
    safe = scale if scale > 0 else torch.ones(())
    return torch.round(chunk / safe).clamp(-127, 127).to(torch.int8), scale.reshape(1)


def exchange(out, into):
    """Send out[p] to each rank p, and fill into[p] from it."""
    rank = dist.get_rank()
    ops = []
    for p, (sent, received) in enumerate(zip(out, into)):
        if p != rank:
            for a, b in zip(sent, received):
                ops += [P2POp(dist.isend, a, p), P2POp(dist.irecv, b, p)]
    if ops:
        for work in batch_isend_irecv(ops):
            work.wait()


def room(chunk):
    return torch.empty(chunk.numel(), dtype=torch.int8), torch.empty(1)


def quantized_all_reduce(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    if n == 1:
        return
    chunks = torch.tensor_split(x.view(-1), n)
    out = [quantize(chunk) for chunk in chunks]
    into = [room(chunks[rank]) for _ in range(n)]
    exchange(out, into)
    into[rank] = out[rank]
    total = sum(q.float() * scale for q, scale in into)
    result = quantize(total)
    into = [room(chunk) for chunk in chunks]
    exchange([result] * n, into)
    into[rank] = result
    for chunk, (q, scale) in zip(chunks, into):
        chunk.copy_(q.float() * scale)
