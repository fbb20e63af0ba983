"""The scores are divided by dim. Divide by its root: softmax(q·kᵀ/√dim)."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def scores_of(q, k):
    return q @ k.mT / q.shape[2]
