# exercise: transformer_block_params
# diagnosis: wrong_type
# hint: never returns anything
def transformer_block_params(hidden, glu):
    params = (16 if glu else 12) * hidden**2
    print(params)
