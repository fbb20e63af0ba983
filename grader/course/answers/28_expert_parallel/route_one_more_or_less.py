"""An expert has room for capacity tokens, and here it gets one more or one less."""
# exercise: route
# diagnosis: wrong_value
# or: ROOM = -1

ROOM = 1


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity + ROOM
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
