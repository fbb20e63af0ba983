# exercise: one_f_one_b_order
# diagnosis: none
def one_f_one_b_order(stage, stages, micro_batches):
    order, forward, backward = [], 0, 0
    while backward < micro_batches:
        if forward < micro_batches and forward - backward < stages - stage:
            order.append(("forward", forward))
            forward += 1
        else:
            order.append(("backward", backward))
            backward += 1
    return order
