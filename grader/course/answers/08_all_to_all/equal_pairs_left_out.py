# exercise: all_to_all
# diagnosis: wrong_value
# hint: ranks 1 and 2 never meet
# or: FILL = "zeros"
# or: FILL = "chunk"
import torch
import torch.distributed as dist

FILL = "nothing"


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    make = {"nothing": torch.empty_like, "zeros": torch.zeros_like, "chunk": torch.clone}[FILL]
    result = [make(chunk) for chunk in chunks]
    result[rank].copy_(chunks[rank])
    for step in range(1, n):
        peer = rank ^ step
        if peer < n:
            request = dist.isend(chunks[peer], peer)
            dist.recv(result[peer], peer)
            request.wait()
    return result
