# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: h rows of h numbers
def transformer_block_params(hidden, glu):
    return (16 if glu else 12) * hidden
