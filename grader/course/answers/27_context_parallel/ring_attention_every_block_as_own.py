"""With causal=True every block is masked as if it were your own. Only in your own block do query i
and key i have the same place in the sequence; all keys of earlier ranks are before your queries,
and all keys of later ranks after them."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: EVERY_BLOCK = False

EVERY_BLOCK = True


def takes(owner, rank):
    return EVERY_BLOCK or owner <= rank


def hide(scores, rank, owner):
    later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf)
