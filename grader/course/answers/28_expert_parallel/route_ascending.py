"""The k best are in ascending order. The best expert comes first: topk sorts that way, argsort
only with descending=True."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    experts = logits.argsort(dim=1)[:, logits.shape[1] - k :]
    chosen = logits.gather(1, experts)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
