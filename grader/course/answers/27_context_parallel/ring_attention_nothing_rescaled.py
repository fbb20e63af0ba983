"""The weights of the blocks are relative to different largest scores, and are added up as if these
were the same. When the maximum changes, both sums have to be rescaled by exp(old − new)."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: OF_ALL_SO_FAR = False

OF_ALL_SO_FAR = True


def added(sums, scores, values):
    m, total, out = sums
    top = scores.amax(-1, keepdim=True)
    new = torch.maximum(m, top) if OF_ALL_SO_FAR else top
    weights = (scores - new).exp()
    return new, total + weights.sum(-1, keepdim=True), out + weights @ values
