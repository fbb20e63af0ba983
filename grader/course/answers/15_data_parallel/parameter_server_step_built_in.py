# exercise: parameter_server_step
# diagnosis: forbidden_call
# hint: everything goes through rank 0
import torch.distributed as dist


def parameter_server_step(grads):
    for grad in grads:
        dist.all_reduce(grad)
        grad /= dist.get_world_size()
