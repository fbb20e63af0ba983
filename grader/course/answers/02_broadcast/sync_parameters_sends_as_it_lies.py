# exercise: sync_parameters
# diagnosis: exception
# hint: contiguous in memory
# says: transposed from rank
# A clone lies in memory as its original does, and send takes no transposed one.
import torch
import torch.distributed as dist


@torch.no_grad()
def sync_parameters(module, src):
    for tensor in [*module.parameters(), *module.buffers()]:
        mine = tensor.clone()
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size()):
                if dst != src:
                    dist.send(mine, dst)
        else:
            dist.recv(mine, src)
        tensor.copy_(mine)
