# exercise: quantized_all_reduce
# diagnosis: too_many_bytes
# hint: 8 more in each for a scale
# earns: 0.5
import torch
import torch.distributed as dist


def blocks(chunk):
    return torch.nn.functional.pad(chunk, (0, -len(chunk) % 4)).view(-1, 4)


def packed(chunk):
    rows = blocks(chunk)
    scales = rows.abs().amax(1) / 127
    q = (rows / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8)
    return torch.cat([q.flatten(), scales.view(torch.int8)])


def unpacked(message, size):
    rows = (size + 3) // 4
    scales = message[4 * rows :].clone().view(torch.float32)
    return (message[: 4 * rows].view(-1, 4).float() * scales[:, None]).flatten()[:size]


def received(size, peer):
    message = torch.empty(8 * ((size + 3) // 4), dtype=torch.int8)
    dist.recv(message, peer)
    return unpacked(message, size)


def quantized_all_reduce(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    chunks = list(x.view(-1).tensor_split(n))
    peers = [(rank + step) % n for step in range(1, n)]
    there = [dist.isend(packed(chunks[peer]), peer) for peer in peers]
    mine = chunks[rank].clone()
    for peer in reversed(peers):
        mine += received(len(mine), peer)
    for request in there:
        request.wait()
    done = packed(mine)
    back = [dist.isend(done, peer) for peer in peers]
    chunks[rank].copy_(unpacked(done, len(mine)))
    for peer in reversed(peers):
        chunks[peer].copy_(received(len(chunks[peer]), peer))
    for request in back:
        request.wait()
