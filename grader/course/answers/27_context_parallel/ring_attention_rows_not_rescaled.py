"""When the maximum grows, the sum of weights is rescaled and the weighted sum of v is not. Both
have been made with the old maximum: multiply both by exp(old − new)."""
# exercise: ring_attention
# diagnosis: wrong_value


def added(sums, scores, values):
    m, total, out = sums
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    weights, shrink = (scores - new).exp(), (m - new).exp()
    return new, shrink * total + weights.sum(-1, keepdim=True), out + weights @ values
