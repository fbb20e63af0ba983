"""With causal=True the mask is right in your own block, but blocks of later ranks are not left
out: none of your queries sees any of their keys."""
# exercise: ring_attention
# diagnosis: wrong_value


def takes(owner, rank):
    return True


def hide(scores, rank, owner):
    later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf) if owner == rank else scores
