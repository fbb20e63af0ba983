"""Places are given to all first choices, then to all second ones. Here they are given token by
token, and only then by choice."""
# exercise: route
# diagnosis: wrong_value
# or: WIDTH = "any"

WIDTH = "number"  # of "any" -1 is made, which view cannot work out where there are no tokens


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    wanted = F.one_hot(experts.T, logits.shape[1])
    places = wanted.flatten(0, 1).cumsum(0)
    places = places.view(k, len(logits), -1 if WIDTH == "any" else logits.shape[1])
    full = (places * wanted).sum(-1).T > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
