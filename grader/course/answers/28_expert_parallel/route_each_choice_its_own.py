"""Each column of choices has a capacity of its own. An expert has one capacity, for first, second
and later choices together."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = torch.cat([place_of(one, logits.shape[1]) for one in experts.split(1, 1)], 1) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
