"""Experts are dealt out to ranks in turn here. Expert e lives on rank e // len(experts), as number
e % len(experts) of that rank."""
# exercise: expert_parallel
# diagnosis: wrong_value

right = expert_parallel


def expert_parallel(x, expert, experts):
    n = dist.get_world_size()
    place = expert % n * len(experts) + expert // n
    return right(x, torch.where(expert < 0, expert, place), experts)
