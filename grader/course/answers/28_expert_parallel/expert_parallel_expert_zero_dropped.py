"""Tokens for expert 0 are left out, as if they had been dropped. Only −1 means that: ask
expert >= 0, and not expert > 0."""
# exercise: expert_parallel
# diagnosis: wrong_value


def sorted_tokens(expert):
    kept = (expert > 0).nonzero().flatten()
    return kept[expert[kept].argsort(stable=True)]
