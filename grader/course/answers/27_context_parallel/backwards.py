"""With causal=True your mask is the wrong way round: a query sees its own key and those *before*
it, j ≤ i."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value
# or: OWN = 1
# or: BLOCKS = "earlier"
# or: BLOCKS = "earlier"; OWN = 1

BLOCKS = "later"
OWN = 0


def takes(owner, rank):
    return owner >= rank if BLOCKS == "later" else owner <= rank


def hide(scores, rank, owner):
    if owner != rank:
        return scores
    i, j = torch.arange(scores.shape[1])[:, None], torch.arange(scores.shape[2])
    return scores.masked_fill(j < i + OWN, -math.inf)
