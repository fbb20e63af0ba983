"""The scores are divided by the root of another dimension of q, such as the number of tokens. dim
is the last one: softmax(q·kᵀ/√dim)."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value
# or: DIMENSION = 0

DIMENSION = 1


def scores_of(q, k):
    return q @ k.mT / math.sqrt(q.shape[DIMENSION])
