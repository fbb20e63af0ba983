"""When the maximum grows, the weighted sum of v is rescaled and the sum of weights is not. Both
have been made with the old maximum: multiply both by exp(old − new)."""
# exercise: ring_attention
# diagnosis: wrong_value


def added(sums, scores, values):
    m, total, out = sums
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    weights, shrink = (scores - new).exp(), (m - new).exp()
    return new, total + weights.sum(-1, keepdim=True), shrink * out + weights @ values
