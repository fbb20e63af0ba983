# exercise: transformer_block_params
# diagnosis: wrong_type
# hint: A count is a whole number
def transformer_block_params(hidden, glu):
    params = (16 if glu else 12) * hidden**2
    print(params)
