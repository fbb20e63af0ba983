# exercise: average_gradients
# diagnosis: none
import torch
import torch.distributed as dist


def average_gradients(module):
    trained = [p for p in module.parameters() if p.requires_grad]
    parts = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in trained]
    flags = trained[0].new_tensor([p.grad is not None for p in trained])
    flat = torch.cat([flags, *parts]).detach()
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    flat /= dist.get_world_size()
    flags, *means = flat.split([len(trained), *(p.numel() for p in trained)])
    for p, flag, mean in zip(trained, flags, means):
        if flag > 0:
            p.grad = mean.view_as(p).clone()
