# exercise: quantized_all_reduce
# diagnosis: too_many_bytes
# hint: Whole tensors are sent
import torch
import torch.distributed as dist


def quantized_all_reduce(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    flat = x.view(-1)
    scale = flat.abs().max().reshape(1) / 127 if len(flat) else torch.zeros(1)
    q = (flat / scale if scale else flat).round().to(torch.int8)
    message = torch.cat([q, scale.view(torch.int8)])
    rows = [torch.empty_like(message) for _ in range(n)]
    rows[rank] = message
    sends = [dist.isend(message, peer) for peer in range(n) if peer != rank]
    for peer in range(n):
        if peer != rank:
            dist.recv(rows[peer], peer)
    for request in sends:
        request.wait()
    flat.copy_(sum(row[:-4].float() * row[-4:].clone().view(torch.float32) for row in rows))
