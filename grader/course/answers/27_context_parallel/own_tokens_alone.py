"""Each rank has attended to its own tokens alone. A query needs the keys and values of all ranks.
"""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def ring_attention(q, k, v, causal):
    return attend(q, k, v, causal)


def ulysses_attention(q, k, v, causal):
    return attend(q, k, v, causal)
