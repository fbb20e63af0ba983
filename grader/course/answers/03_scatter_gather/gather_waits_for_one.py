# exercise: gather
# diagnosis: unwaited_request
# hint: wait for each
# Waits for the last request and takes the others to be done as well.
import torch
import torch.distributed as dist


def gather(x, dst):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [x.clone() for _ in range(n)]
    request = None
    for src in range(n):
        if src != dst:
            request = dist.irecv(parts[src], src)
    if request is not None:
        request.wait()
    return parts
