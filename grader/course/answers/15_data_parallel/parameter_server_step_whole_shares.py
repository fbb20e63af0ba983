"""A gradient is 0 wherever no rank has all samples: samples // total is a whole number, and so 0 or
1. Divide with /.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    total = int(all_samples(samples))
    for grad in grads:
        grad *= samples // total
        added_up(grad)
