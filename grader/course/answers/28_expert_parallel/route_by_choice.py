"""Places are given to all first choices, then to all second ones. Here they are given token by
token, and only then by choice."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts.T, logits.shape[1]).T > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
