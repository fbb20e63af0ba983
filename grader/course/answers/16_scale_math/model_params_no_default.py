"""max_positions may be left out: it is 0 then. Write max_positions=0 in the first line."""
# exercise: model_params
# diagnosis: exception


def model_params(hidden, layers, vocab, glu, tied_head, max_positions):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    return layers * block(hidden, glu) + rows * hidden
