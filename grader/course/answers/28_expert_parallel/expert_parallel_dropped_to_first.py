"""A token with expert −1 is worked on by expert 0. Leave these tokens out; their result is zeros.
"""
# exercise: expert_parallel
# diagnosis: wrong_value

right = expert_parallel


def expert_parallel(x, expert, experts):
    return right(x, expert.clamp(min=0), experts)
