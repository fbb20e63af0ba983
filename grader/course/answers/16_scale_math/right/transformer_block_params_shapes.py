# exercise: transformer_block_params
# diagnosis: none
import math


def transformer_block_params(hidden, glu):
    h = hidden
    shapes = [(h, 3 * h), (h, h), (h, 4 * h), (4 * h, h)]
    if glu:
        shapes.append((h, 4 * h))
    return sum(map(math.prod, shapes))
