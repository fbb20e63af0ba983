# exercise: model_params
# diagnosis: none
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    return ((12 + 4 * glu) * hidden * layers + vocab * (2 - tied_head) + max_positions) * hidden
