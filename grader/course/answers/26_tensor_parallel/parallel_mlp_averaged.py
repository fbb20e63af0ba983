"""The result is divided by n. The rows of the second weight are summed over: their parts are added
up, and not averaged."""
# exercise: parallel_mlp
# diagnosis: wrong_value
# or: WHERE = "after g"
# or: WHERE = "in f and g"

WHERE = "in g"


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return added_up(part) / dist.get_world_size()

    @staticmethod
    def backward(ctx, grad):
        return grad


class EnterMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad) / dist.get_world_size()


def parallel_mlp(x, w_in_shard, w_out_shard):
    enter = EnterMean if WHERE == "in f and g" else Enter
    part = F.gelu(enter.apply(x) @ w_in_shard) @ w_out_shard
    if WHERE == "after g":
        return Leave.apply(part) / dist.get_world_size()
    return Mean.apply(part)
