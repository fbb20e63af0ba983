# exercise: gpipe_order
# diagnosis: wrong_value
# hint: counted from 0
def gpipe_order(stage, stages, micro_batches):
    return [(what, i) for what in ("forward", "backward") for i in range(1, micro_batches + 1)]
