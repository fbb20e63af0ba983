"""Your blocks count 12h² with and without a gate: a gated block has 16h²."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    return layers * 12 * hidden**2 + rows * hidden
