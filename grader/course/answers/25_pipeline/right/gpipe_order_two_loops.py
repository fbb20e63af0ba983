# exercise: gpipe_order
# diagnosis: none
def gpipe_order(stage, stages, micro_batches):
    order = []
    for what in ["forward", "backward"]:
        i = 0
        while i < micro_batches:
            order.append((what, i))
            i += 1
    return tuple(order)
