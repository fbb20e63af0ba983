"""The scores are not divided by √dim: softmax(q·kᵀ/√dim)."""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def scores_of(q, k):
    return q @ k.mT
