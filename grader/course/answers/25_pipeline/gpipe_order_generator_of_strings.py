# exercise: gpipe_order
# diagnosis: wrong_value
# hint: The order is right, the words are not
def gpipe_order(stage, stages, micro_batches):
    return [("fwd", i) for i in range(micro_batches)] + [("bwd", i) for i in range(micro_batches)]
