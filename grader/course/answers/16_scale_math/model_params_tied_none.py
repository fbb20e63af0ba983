"""With tied_head neither the embedding nor the head is counted. Tied means that the two share one
matrix, and one matrix is vocab times hidden numbers."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (0 if tied_head else 2 * vocab) + max_positions
    return layers * block(hidden, glu) + rows * hidden
