"""Each stage begins with another micro-batch. All stages take them in one order: what one stage sends,
the next needs at once."""
# exercise: gpipe_order
# diagnosis: wrong_value
# or: SIGN = -1
# or: TURNED = ("forward", "backward")
# or: TURNED = ("forward",)

SIGN = 1
TURNED = ("backward",)


def gpipe_order(stage, stages, micro_batches):
    by = {what: SIGN * stage for what in TURNED}
    return [(what, (i + by.get(what, 0)) % micro_batches) for what, i in all_forward_first(micro_batches)]
