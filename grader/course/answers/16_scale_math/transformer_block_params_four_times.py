"""That is four times the count, as if these were bytes. Elements are asked for."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return 4 * block(hidden, glu)
