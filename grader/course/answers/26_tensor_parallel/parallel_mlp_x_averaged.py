"""The gradient of x is divided by n. Every rank contributes another part of it: these are added
up, and not averaged."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad) / dist.get_world_size()


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(F.gelu(Enter.apply(x) @ w_in_shard) @ w_out_shard)
