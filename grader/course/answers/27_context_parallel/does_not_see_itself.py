"""With causal=True a token does not see itself. A query sees its own key and those before it: keep
j ≤ i."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def hide(scores, rank, owner):
    i = rank * scores.shape[1] + torch.arange(scores.shape[1])[:, None]
    j = owner * scores.shape[1] + torch.arange(scores.shape[2])
    return scores.masked_fill(j >= i, -math.inf)
