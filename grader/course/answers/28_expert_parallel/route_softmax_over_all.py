"""The softmax is taken over all experts. Here it is over the k chosen ones, so that the weights of
a token add up to 1 before anything is dropped."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    _, experts = logits.topk(k, dim=1)
    weights = logits.softmax(1).gather(1, experts)
    full = place_of(experts, logits.shape[1]) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
