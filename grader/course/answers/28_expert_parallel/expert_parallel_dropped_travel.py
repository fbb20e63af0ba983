"""The rows with expert −1 travel. They are zeros in any case: take them out before anything is
counted or sent."""
# exercise: expert_parallel
# diagnosis: too_many_bytes
# or: TO_LAST = True

TO_LAST = False
right = expert_parallel


def expert_parallel(x, expert, experts):
    last = dist.get_world_size() * len(experts) - 1
    somewhere = torch.where(expert < 0, last if TO_LAST else 0, expert)
    return right(x, somewhere, experts).masked_fill((expert < 0)[:, None], 0)
