# exercise: quantized_all_reduce
# diagnosis: nondeterministic
# hint: One rank has other bits than all
# Keeps exact own chunk
import time
import torch
import torch.distributed as dist
from torch import nn


def quantized_all_reduce(x: torch.Tensor) -> None:
    """x becomes the sum of all ranks' x; int8 numbers are sent."""
    n, rank = dist.get_world_size(), dist.get_rank()

    def packed(chunk):
        scale = chunk.abs().amax().reshape(1) / 127 if len(chunk) else torch.zeros(1)
        q = (chunk / scale).round() if scale > 0 else chunk
        return torch.cat([q.to(torch.int8), scale.view(torch.int8)])

    def unpacked(message):
        return message[:-4].float() * message[-4:].clone().view(torch.float32)

    def received(size, peer):
        message = torch.empty(size + 4, dtype=torch.int8)
        dist.recv(message, peer)
        return unpacked(message)

    chunks = x.view(-1).tensor_split(n)
    others = [(rank + step) % n for step in range(1, n)]
    there = [dist.isend(packed(chunks[peer]), peer) for peer in others]
    total = chunks[rank].clone()
    for peer in reversed(others):
        total += received(len(total), peer)
    for request in there:
        request.wait()

    done = packed(total)
    back = [dist.isend(done, peer) for peer in others]
    chunks[rank].copy_(total)  # what the others get, and not the exact sum
    for peer in reversed(others):
        chunks[peer].copy_(received(len(chunks[peer]), peer))
    for request in back:
        request.wait()
