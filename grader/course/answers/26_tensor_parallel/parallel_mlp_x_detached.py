"""No gradient reaches x: it is used without its history (.detach(), .data, torch.no_grad()), or
backward returns None for it."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(F.gelu(x.detach() @ w_in_shard) @ w_out_shard)
