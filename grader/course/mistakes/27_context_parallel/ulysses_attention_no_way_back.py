"""It is right on the way there, and the last step is missing: all tokens of some heads have to
become own tokens of all heads again, by a fourth all-to-all."""
# exercise: ulysses_attention
# diagnosis: wrong_shape


def ulysses_attention(q, k, v, causal):
    return attend(*map(gathered, (q, k, v)), causal)
