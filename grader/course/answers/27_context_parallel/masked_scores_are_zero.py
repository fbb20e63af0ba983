"""With causal=True, keys that a query must not see have a score of 0, and e⁰ is a weight of 1. Set
these scores to −∞: scores.masked_fill(later, -math.inf)."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value
# or: EVERY_BLOCK = True

EVERY_BLOCK = False


def takes(owner, rank):
    return EVERY_BLOCK or owner <= rank


def hide(scores, rank, owner):
    i = rank * scores.shape[1] + torch.arange(scores.shape[1])[:, None]
    j = owner * scores.shape[1] + torch.arange(scores.shape[2])
    return scores * (j <= i)
