# exercise: gpipe_order
# diagnosis: none
def gpipe_order(stage, stages, micro_batches):
    return [(what, i) for what in ("forward", "backward") for i in range(micro_batches)]
