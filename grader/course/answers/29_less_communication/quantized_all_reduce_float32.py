# exercise: quantized_all_reduce
# diagnosis: too_many_bytes
# hint: messages of float32
# earns: 0.5
import torch
import torch.distributed as dist


def quantized_all_reduce(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    chunks = list(x.view(-1).tensor_split(n))
    peers = [(rank + step) % n for step in range(1, n)]
    there = [dist.isend(chunks[peer].clone(), peer) for peer in peers]
    mine = chunks[rank].clone()
    for peer in reversed(peers):
        message = torch.empty_like(mine)
        dist.recv(message, peer)
        mine += message
    for request in there:
        request.wait()
    back = [dist.isend(mine, peer) for peer in peers]
    chunks[rank].copy_(mine)
    for peer in reversed(peers):
        message = torch.empty_like(chunks[peer])
        dist.recv(message, peer)
        chunks[peer].copy_(message)
    for request in back:
        request.wait()
