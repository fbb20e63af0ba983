# exercise: quantized_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


def encode(values):
    top = values.abs().max().item() if values.numel() else 0.0
    scale = torch.tensor([top / 127], dtype=torch.float32)
    numbers = (values / scale).round() if top else values
    return torch.cat([scale.view(torch.int8), numbers.to(torch.int8)])


def decode(message):
    return message[4:].to(torch.float32) * message[:4].clone().view(torch.float32)


def turn(message, size):
    """Send a message to the right, and return the one from the left."""
    n, rank = dist.get_world_size(), dist.get_rank()
    came = torch.empty(4 + size, dtype=torch.int8)
    request = dist.isend(message, (rank + 1) % n)
    dist.recv(came, (rank - 1) % n)
    request.wait()
    return came


def quantized_all_reduce(x):
    """A ring that quantizes at each hop, and passes on the bytes of the sums as they are."""
    n, rank = dist.get_world_size(), dist.get_rank()
    chunks = x.view(-1).tensor_split(n)
    for s in range(1, n):
        into = chunks[(rank - s - 1) % n]
        into += decode(turn(encode(chunks[(rank - s) % n]), len(into)))
    message = encode(chunks[rank])
    if n > 1:
        chunks[rank].copy_(decode(message))
    for s in range(1, n):
        into = chunks[(rank - s) % n]
        message = turn(message, len(into))
        into.copy_(decode(message))
