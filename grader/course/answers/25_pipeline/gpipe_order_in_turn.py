"""Each backward pass follows its own forward pass here, so only one micro-batch is ever on its
way, and all other stages wait. In GPipe's order all forward passes come first."""
# exercise: gpipe_order
# diagnosis: wrong_value


def gpipe_order(stage, stages, micro_batches):
    return [(what, i) for i in range(micro_batches) for what in ("forward", "backward")]
