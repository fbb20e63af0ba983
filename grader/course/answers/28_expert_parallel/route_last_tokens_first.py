"""The last tokens are served first. Places are given in the order of the tokens, from token 0."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts.flip(0, 1), logits.shape[1]).flip(0, 1) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
