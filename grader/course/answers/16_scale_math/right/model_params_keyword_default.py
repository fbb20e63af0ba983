# exercise: model_params
# diagnosis: none
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=None):
    block = (16 if glu else 12) * hidden * hidden
    parts = {"blocks": layers * block, "embedding": vocab * hidden}
    parts["head"] = 0 if tied_head else vocab * hidden
    parts["positions"] = (max_positions or 0) * hidden
    return sum(parts.values())
