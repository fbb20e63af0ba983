"""p.grad must have the dtype of p, and torch.zeros makes float32 unless it is told otherwise:
torch.zeros_like(p).
"""
# exercise: average_gradients
# diagnosis: exception


def average_gradients(module):
    for p in module.parameters():
        there = torch.tensor([float(p.grad is not None)])
        dist.all_reduce(there)
        if there:
            p.grad = torch.zeros(p.shape) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
