"""When one choice of a token is dropped, all of them are. Only the choice whose expert is full is
dropped."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = (place_of(experts, logits.shape[1]) > capacity).any(1, keepdim=True)
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
