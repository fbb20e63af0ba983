"""With causal=True a token does not see itself. A query sees its own key and those before it: keep
j ≤ i."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value
# or: BUT = "the first token of a rank"
# or: BUT = "the first token"

BUT = "nothing"


def hide(scores, rank, owner):
    i = rank * scores.shape[1] + torch.arange(scores.shape[1])[:, None]
    j = owner * scores.shape[1] + torch.arange(scores.shape[2])
    shown = {"nothing": j < 0, "the first token": j == 0}.get(BUT, j == rank * scores.shape[1])
    return scores.masked_fill((j >= i) & ~((i == j) & shown), -math.inf)
