# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: 8h² is the MLP alone
# not: 12h²
def transformer_block_params(hidden, glu):
    return 2 * hidden * 4 * hidden
