"""The weights of what fits add up to 1, and where nothing fits they are not numbers. Take the
softmax over the k chosen logits, whether they fit or not, and then set the weights of full experts
to 0: their share is lost."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    full = place_of(experts, logits.shape[1]) > capacity
    weights = chosen.masked_fill(full, -float("inf")).softmax(1)
    return experts.masked_fill(full, -1), weights
