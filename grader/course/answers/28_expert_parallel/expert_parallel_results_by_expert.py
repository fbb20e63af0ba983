"""The results go back in the order of the experts. The other ranks expect them in the order in
which their rows have arrived: put each result where its row was."""
# exercise: expert_parallel
# diagnosis: wrong_value


def worked_on(arrived, local, experts):
    return torch.cat([network(arrived[local == e]) for e, network in enumerate(experts)])
