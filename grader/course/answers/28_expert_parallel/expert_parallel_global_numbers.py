"""experts holds the rank's own experts only, and expert is a number among all of them: expert e is
experts[e % len(experts)] on rank e // len(experts)."""
# exercise: expert_parallel
# diagnosis: exception


def expert_parallel(x, expert, experts):
    result = torch.zeros_like(x)
    for t, e in enumerate(expert.tolist()):
        if e >= 0:
            result[t] = experts[e](x[t])
    return result
