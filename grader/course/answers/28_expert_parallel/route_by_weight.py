"""Places are given by weight, the largest first. Here they are given in the order of the tokens,
however large their weights are."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    order = weights.flatten().argsort(descending=True)
    place = torch.empty_like(order)
    place[order] = place_of(experts.flatten()[order], logits.shape[1])
    full = place.view_as(experts) > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
