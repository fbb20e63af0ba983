"""That is GPipe's order: all micro-batches are in flight. A stage turns to backward as soon as the
first gradient can have arrived."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value
# earns: 0.5
# or: DOWN = True

DOWN = False


def one_f_one_b_order(stage, stages, micro_batches):
    back = list(range(micro_batches))
    order = [("forward", i) for i in back]
    return order + [("backward", i) for i in (back[::-1] if DOWN else back)]
