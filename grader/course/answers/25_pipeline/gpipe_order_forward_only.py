"""The backward passes are missing."""
# exercise: gpipe_order
# diagnosis: wrong_shape


def gpipe_order(stage, stages, micro_batches):
    return [("forward", i) for i in range(micro_batches)]
