# exercise: gpipe_order
# diagnosis: wrong_value
# hint: Only the backward passes may do that
def gpipe_order(stage, stages, micro_batches):
    down = list(range(micro_batches))[::-1]
    return [("forward", i) for i in down] + [("backward", i) for i in down]
