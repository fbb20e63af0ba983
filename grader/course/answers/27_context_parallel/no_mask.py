"""Without a mask it is right, and with causal=True nothing is masked: a query must not see keys of
later tokens. Rank r's query i is token r·tokens + i of the sequence."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def takes(owner, rank):
    return True


def hide(scores, rank, owner):
    return scores
