"""With causal=True your own block is taken whole. Even there, a query sees only its own key and
those before it."""
# exercise: ring_attention
# diagnosis: wrong_value


def hide(scores, rank, owner):
    return scores
