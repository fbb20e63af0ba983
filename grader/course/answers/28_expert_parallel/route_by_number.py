"""The k experts of a token are in the order of their numbers. The best one comes first, as topk
gives them, and the weights come in the same order."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    experts = logits.topk(k, dim=1)[1].sort(dim=1)[0]
    chosen = logits.gather(1, experts)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
