"""On each rank the first expert works on all rows. Row by row, it is number expert % len(experts)
of the rank that the row is sent to."""
# exercise: expert_parallel
# diagnosis: wrong_value


def worked_on(arrived, local, experts):
    return experts[0](arrived)
