"""More than the tables and the matrices of the blocks is counted. A norm before the head has one
or two vectors of hidden numbers; norms are left out here."""
# exercise: model_params
# diagnosis: wrong_value
# or: VECTORS = 2

VECTORS = 1


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    return layers * block(hidden, glu) + (rows + VECTORS) * hidden
