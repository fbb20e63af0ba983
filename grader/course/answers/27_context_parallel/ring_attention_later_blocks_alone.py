"""With causal=True you leave out the blocks of earlier ranks and take those of later ones. A query sees
its own block up to itself, and the blocks of earlier ranks whole: owner ≤ rank."""
# exercise: ring_attention
# diagnosis: wrong_value


def takes(owner, rank):
    return owner >= rank


def hide(scores, rank, owner):
    later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf) if owner == rank else scores
