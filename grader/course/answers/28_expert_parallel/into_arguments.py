"""The arguments belong to the caller, who asks for their gradients: do not write into them. Make
new tensors."""
# exercise: route, expert_parallel
# diagnosis: exception


def route(logits, k, capacity):
    logits -= logits.amax(1, keepdim=True)


right = expert_parallel


def expert_parallel(x, expert, experts):
    x[expert < 0] = 0
    return right(x, expert, experts)
