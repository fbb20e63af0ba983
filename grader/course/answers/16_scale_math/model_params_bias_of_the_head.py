"""That is vocab too many, as if the head had a bias. Here a head is a matrix and nothing else."""
# exercise: model_params
# diagnosis: wrong_value
# or: TIED_TOO = True

TIED_TOO = False


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    bias = vocab if TIED_TOO or not tied_head else 0
    return layers * block(hidden, glu) + rows * hidden + bias
