"""The experts get gradients, and x gets none: autograd does not see how the rows came to the
experts. The way there needs a backward of its own."""
# exercise: expert_parallel
# diagnosis: wrong_gradient

right = expert_parallel


def expert_parallel(x, expert, experts):
    return right(x.detach(), expert, experts)
