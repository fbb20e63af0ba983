"""The gradient of x holds this rank's part, and zeros. x went into the losses of all ranks, into
each through another part: gather those parts in backward, in a torch.autograd.Function.
"""
# exercise: sequence_shard
# diagnosis: wrong_gradient


def sequence_shard(x, dim=1):
    return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()
