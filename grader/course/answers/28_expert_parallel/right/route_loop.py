# exercise: route
# diagnosis: none
import torch


def route(logits, k, capacity):
    values, experts = torch.sort(logits, dim=1, descending=True)
    weights, experts = values[:, :k].softmax(1), experts[:, :k].clone()
    room = [capacity] * logits.shape[1]
    keep = torch.zeros_like(weights)
    for t in range(len(logits)):
        for j in range(k):
            e = int(experts[t, j])
            if room[e] > 0:
                room[e] -= 1
                keep[t, j] = 1
            else:
                experts[t, j] = -1
    return experts, weights * keep
