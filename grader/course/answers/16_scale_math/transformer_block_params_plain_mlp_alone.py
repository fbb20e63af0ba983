"""8h² is the MLP alone, and without a gate. Attention has four matrices of h² too."""
# exercise: transformer_block_params
# diagnosis: wrong_value
# not: 12h²


def transformer_block_params(hidden, glu):
    return 8 * hidden**2
