"""That is forward twice, as if activations were recomputed. Nothing is recomputed here."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 8 * tokens * params
