# exercise: transformer_block_params
# diagnosis: none
def transformer_block_params(hidden, glu):
    h = hidden
    attention = 3 * h * h + h * h
    if glu:
        return attention + 8 * h * h + 4 * h * h
    return attention + 4 * h * h + 4 * h * h
