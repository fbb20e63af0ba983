"""That is 1F1B. In GPipe's order a stage runs all its forward passes before its first backward
pass."""
# exercise: gpipe_order
# diagnosis: wrong_value


def gpipe_order(stage, stages, micro_batches):
    return alternating(stages - stage - 1, micro_batches)
