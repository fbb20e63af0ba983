# exercise: route
# diagnosis: none
import torch


def route(logits, k, capacity):
    """A softmax over all experts of which those that are not chosen are minus infinity."""
    experts = logits.topk(k, dim=1).indices
    rest = torch.full_like(logits, float("-inf")).scatter(1, experts, 0.0)
    weights = (logits + rest).softmax(dim=1).gather(1, experts)
    counts, kept = [0] * logits.shape[1], []
    for row in experts.tolist():
        for e in row:
            counts[e] += 1
            kept.append(counts[e] <= capacity)
    kept = torch.tensor(kept, dtype=torch.bool).reshape(experts.shape)
    return experts.where(kept, torch.tensor(-1)), weights * kept
