# exercise: transformer_block_params
# diagnosis: wrong_type
# hint: A count is a whole number
def transformer_block_params(hidden, glu):
    return (16.0 if glu else 12.0) * hidden**2
