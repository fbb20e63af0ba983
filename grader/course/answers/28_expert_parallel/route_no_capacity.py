"""The capacity is ignored: every choice is kept, however full its expert is."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    return experts, chosen.softmax(1)
