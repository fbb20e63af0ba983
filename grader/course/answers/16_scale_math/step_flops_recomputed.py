"""That is four times forward. Is forward counted twice, as if activations were recomputed? Nothing is
recomputed here. Or is backward three times forward? It is twice."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 8 * tokens * params
