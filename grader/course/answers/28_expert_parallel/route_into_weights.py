"""Backward needs a result that was written into after it was computed; of a softmax, for example,
the weights themselves. Make a new tensor instead: masked_fill without an underscore, or
torch.where."""
# exercise: route
# diagnosis: exception


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    weights[full] = 0
    return experts.masked_fill(full, -1), weights
