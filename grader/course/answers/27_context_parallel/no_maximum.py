"""exp overflows: for scores above 88.7 exp is infinite in float32, and ∞/∞ is not a number.
Subtract the largest score of a row before exp; a common factor cancels in the quotient."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def added(sums, scores, values):
    m, total, out = sums
    weights = scores.exp()
    return m, total + weights.sum(-1, keepdim=True), out + weights @ values


def softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)
