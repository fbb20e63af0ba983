"""That is the MLP alone, 8h², or 12h² with GLU. Attention has four matrices of h² too."""
# exercise: transformer_block_params
# diagnosis: wrong_value
# not: two matrices up


def transformer_block_params(hidden, glu):
    return (12 if glu else 8) * hidden**2
