"""Queries, keys and values have a matrix each: 3h² and not h²."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return block(hidden, glu) - 2 * hidden**2
