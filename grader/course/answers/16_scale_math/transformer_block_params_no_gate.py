"""12h² is a block without a gate. With GLU the MLP has two matrices up and one down, of 4h² each;
attention has four more, of h² each. (Many models make a gated MLP narrower, so that a block comes
to 12h² again; here the width stays 4h.)"""
# exercise: transformer_block_params
# diagnosis: wrong_value
# not: the MLP alone


def transformer_block_params(hidden, glu):
    return 12 * hidden**2
