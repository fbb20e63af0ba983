"""With GLU that is 20h²: the gate doubles the first matrix alone, and the one that leads back stays
as it is. 4h² for attention, 8h² to go up twice, 4h² to come down.
"""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return 4 * hidden**2 + 8 * hidden**2 * (2 if glu else 1)
