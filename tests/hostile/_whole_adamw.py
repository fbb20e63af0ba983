# The whole of AdamW's state on every rank, with the traffic of one that is cut into shards.
import torch
import torch.distributed as dist


def averaged(params):
    """Give every rank the mean gradients."""
    n = dist.get_world_size()
    exists = torch.tensor([float(p.grad is not None) for p in params])
    flat = torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in params]
    )
    size = -(-flat.numel() // n)
    padded = flat.new_zeros(size * n)
    padded[: flat.numel()] = flat
    mine = flat.new_empty(size)
    dist.reduce_scatter_tensor(mine, padded)
    dist.all_gather_into_tensor(padded, mine / n)
    flags = exists.new_empty(n * exists.numel())
    dist.all_gather_into_tensor(flags, exists)
    start = 0
    for p, some in zip(params, flags.view(n, -1).any(0)):
        gradient = padded[start : start + p.numel()].view_as(p)
        start += p.numel()
        p.grad = gradient.clone() if some else None


class WholeAdamW:
    def __init__(self, params, **options):
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.params, **options)

    def step(self):
        averaged(self.params)
        self.optimizer.step()

    def zero_grad(self):
        for p in self.params:
            p.grad = None
