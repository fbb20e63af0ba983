"""After something is dropped, the weights that are left are made to add up to 1 again. They stay
as they are: the share of an expert that was full is lost."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    weights = weights.masked_fill(full, 0)
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-12)
    return experts.masked_fill(full, -1), weights
