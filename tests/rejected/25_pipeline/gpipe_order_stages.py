# exercise: gpipe_order
# diagnosis: wrong_shape
# hint: the number of stages does not matter
def gpipe_order(stage, stages, micro_batches):
    return [(what, i) for what in ("forward", "backward") for i in range(stages)]
