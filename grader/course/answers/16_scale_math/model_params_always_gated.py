"""Your blocks count 16h² with and without a gate: a block without a gate has 12h²."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    return layers * 16 * hidden**2 + rows * hidden
