# exercise: gather
# diagnosis: none
# Takes the messages as they come, and puts each where it belongs.
import torch
import torch.distributed as dist


def gather(x, dst):
    if dist.get_rank() != dst:
        return dist.send(x, dst)
    parts = {dst: x.clone()}
    while len(parts) < dist.get_world_size():
        part = torch.empty_like(x)
        parts[dist.recv(part)] = part
    return [parts[rank] for rank in sorted(parts)]
