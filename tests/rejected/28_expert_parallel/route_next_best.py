# exercise: route
# diagnosis: wrong_value
# hint: goes to another one
import torch


def route(logits, k, capacity):
    room = [capacity] * logits.shape[1]
    experts = torch.full((len(logits), k), -1)
    order = logits.argsort(dim=1, descending=True)
    chosen = order[:, :k].clone()
    for t, row in enumerate(order.tolist()):
        j = 0
        for e in row:
            if j < k and room[e]:
                room[e] -= 1
                experts[t, j] = chosen[t, j] = e
                j += 1
    weights = logits.gather(1, chosen).softmax(1)
    return experts, weights.masked_fill(experts < 0, 0)
