# exercise: train
# diagnosis: none
# on: 30_capstone
def added_up(x, group):
    """A reduce-scatter and an all-gather, which are an all-reduce."""
    n = dist.get_world_size(group)
    flat = F.pad(x.flatten(), (0, -x.numel() % n))
    part = torch.empty(len(flat) // n)
    dist.reduce_scatter_tensor(part, flat, group=group)
    dist.all_gather_into_tensor(flat, part, group=group)
    return flat[: x.numel()].view_as(x)


def average_in_group(module, group):
    """One bucket."""
    grads = [p.grad for p in module.parameters()]
    bucket = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(bucket, group=group)
    bucket /= dist.get_world_size(group)
    for grad, part in zip(grads, bucket.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view_as(grad))
