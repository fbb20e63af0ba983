"""The softmax goes along the tokens. It goes along the k choices of each token, dim=1."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(0)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
