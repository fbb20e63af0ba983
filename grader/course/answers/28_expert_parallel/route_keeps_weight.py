"""A dropped choice keeps its weight. It gets weight 0, as it gets expert −1."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts.masked_fill(full, -1), weights
