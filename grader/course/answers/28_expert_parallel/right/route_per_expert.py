# exercise: route
# diagnosis: none
import torch


def route(logits, k, capacity):
    """For each expert, find its places in the flat list of choices, and cut it off."""
    values, experts = logits.topk(k, dim=-1)
    exponentials = (values - values.detach().amax(1, keepdim=True)).exp()
    weights = exponentials / exponentials.sum(1, keepdim=True)
    flat = experts.reshape(-1)
    kept = torch.zeros_like(flat, dtype=torch.bool)
    for e in range(logits.size(1)):
        kept[(flat == e).nonzero()[:capacity, 0]] = True
    kept = kept.view_as(experts)
    nothing = torch.zeros((), dtype=weights.dtype)
    return torch.where(kept, experts, -1), torch.where(kept, weights, nothing)
