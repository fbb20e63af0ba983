# exercise: gpipe_order
# diagnosis: wrong_value
# hint: only one micro-batch is ever on its way
def gpipe_order(stage, stages, micro_batches):
    return [(what, i) for i in range(micro_batches) for what in ("forward", "backward")]
