# exercise: sync_parameters
# diagnosis: none
# With the student's own broadcast instead of the built-in one.
import torch
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)


@torch.no_grad()
def sync_parameters(module, src):
    for _, tensor in [*module.named_parameters(), *module.named_buffers()]:
        mine = tensor.detach().clone(memory_format=torch.contiguous_format)
        broadcast(mine, src)
        tensor.copy_(mine)
