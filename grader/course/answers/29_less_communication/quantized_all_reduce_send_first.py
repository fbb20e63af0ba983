# exercise: quantized_all_reduce
# diagnosis: deadlock
# hint: none of them has posted
import torch
import torch.distributed as dist


def packed(chunk):
    top = chunk.abs().max() if len(chunk) else torch.tensor(0.0)
    scale = (top / 127).reshape(1)
    q = (chunk / scale if scale else chunk).round().to(torch.int8)
    return torch.cat([q, scale.view(torch.int8)])


def unpacked(message):
    return message[:-4].float() * message[-4:].clone().view(torch.float32)


def quantized_all_reduce(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    chunks = list(x.view(-1).tensor_split(n))
    peers = [(rank + step) % n for step in range(1, n)]
    there = [dist.send(packed(chunks[peer]), peer) for peer in peers]
    mine = chunks[rank].clone()
    for peer in reversed(peers):
        message = torch.empty(len(mine) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        mine += unpacked(message)
    done = packed(mine)
    back = [dist.isend(done, peer) for peer in peers]
    chunks[rank].copy_(unpacked(done))
    for peer in reversed(peers):
        message = torch.empty(len(chunks[peer]) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        chunks[peer].copy_(unpacked(message))
    for request in back:
        request.wait()
