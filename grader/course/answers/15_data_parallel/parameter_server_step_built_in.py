# exercise: parameter_server_step
# diagnosis: forbidden_call
# hint: everything goes through rank 0
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    count = torch.tensor([float(samples)])
    dist.all_reduce(count)
    for grad in grads:
        grad *= samples
        dist.all_reduce(grad)
        grad /= count.item()
