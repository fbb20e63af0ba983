"""A token with expert −1 is worked on by an expert: in Python, −1 is the last one. Leave these
tokens out; their result is zeros."""
# exercise: expert_parallel
# diagnosis: wrong_value

right = expert_parallel


def expert_parallel(x, expert, experts):
    return right(x, expert % (dist.get_world_size() * len(experts)), experts)
