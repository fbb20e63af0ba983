"""Every rank uses its own experts for its own tokens, as if all ranks had the same ones. A token
has to travel to the rank of its expert."""
# exercise: expert_parallel
# diagnosis: wrong_value


def expert_parallel(x, expert, experts):
    local = torch.where(expert < 0, expert, expert % len(experts))
    return worked_on(x, local, experts)
