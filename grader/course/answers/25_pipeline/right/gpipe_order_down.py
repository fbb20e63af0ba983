# exercise: gpipe_order
# diagnosis: none
def gpipe_order(stage, stages, micro_batches):
    order = []
    for i in range(micro_batches):
        order.append(("forward", i))
    for i in reversed(range(micro_batches)):
        order.append(("backward", i))
    return order
