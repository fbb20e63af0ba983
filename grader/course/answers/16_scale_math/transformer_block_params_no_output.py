"""The output of attention goes through a matrix as well, h²."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return block(hidden, glu) - hidden**2
