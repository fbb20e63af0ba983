"""16h² is a block with a gate. Without GLU the MLP has one matrix up and one down, 8h²."""
# exercise: transformer_block_params
# diagnosis: wrong_value


def transformer_block_params(hidden, glu):
    return 16 * hidden**2
