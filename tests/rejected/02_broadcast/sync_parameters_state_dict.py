# exercise: sync_parameters
# diagnosis: wrong_value
# hint: persistent=False
import torch.distributed as dist


def sync_parameters(module, src):
    for tensor in module.state_dict().values():
        dist.broadcast(tensor, src)
