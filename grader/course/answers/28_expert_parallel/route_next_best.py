"""Where an expert is full, the token goes to another one. Here the choice is dropped: expert −1,
weight 0."""
# exercise: route
# diagnosis: wrong_value


def route(logits, k, capacity):
    room = [capacity] * logits.shape[1]
    experts = torch.full((len(logits), k), -1)
    order = logits.argsort(dim=1, descending=True)
    chosen = order[:, :k].clone()
    for t, row in enumerate(order.tolist()):
        free = [e for e in row if room[e]][:k]
        for j, e in enumerate(free):
            room[e] -= 1
            experts[t, j] = chosen[t, j] = e
    return experts, logits.gather(1, chosen).softmax(1).masked_fill(experts < 0, 0)
