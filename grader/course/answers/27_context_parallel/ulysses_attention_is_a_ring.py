"""Keys and values go round whole, 2·(n − 1) times as many bytes as q has. With an all-to-all each
rank gets only the heads that it works on."""
# exercise: ulysses_attention
# diagnosis: too_many_bytes


def ulysses_attention(q, k, v, causal):
    return ring_attention(q, k, v, causal)
