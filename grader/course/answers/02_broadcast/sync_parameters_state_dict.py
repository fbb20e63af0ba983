"""state_dict() leaves out buffers that were registered with persistent=False; go through
module.buffers()."""
# exercise: sync_parameters
# diagnosis: wrong_value
import torch.distributed as dist


def sync_parameters(module, src):
    for tensor in module.state_dict().values():
        dist.broadcast(tensor, src)
