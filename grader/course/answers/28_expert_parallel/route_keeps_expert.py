"""A dropped choice keeps its expert. It gets expert −1, as it gets weight 0."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts, weights.masked_fill(full, 0)
