"""A matrix has h rows of h numbers: h², not h."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return (16 if glu else 12) * hidden
