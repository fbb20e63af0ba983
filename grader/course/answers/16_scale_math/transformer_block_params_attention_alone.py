"""That is attention alone. The MLP has 8h², or 12h² with GLU."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return 4 * hidden**2
