"""The forward passes run from the last micro-batch to the first. Only the backward passes may do
that."""
# exercise: gpipe_order
# diagnosis: wrong_value
# or: BACK = "up"

BACK = "down"


def gpipe_order(stage, stages, micro_batches):
    down = list(range(micro_batches))[::-1]
    back = down if BACK == "down" else down[::-1]
    return [("forward", i) for i in down] + [("backward", i) for i in back]
