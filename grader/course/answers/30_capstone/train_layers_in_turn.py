"""Layers are dealt out to the stages in turn. A stage has consecutive layers: stage p begins with
layer p · layers // pp."""
# exercise: train
# diagnosis: wrong_value


def layers_of(p, pp, layers):
    return range(p, layers, pp)
