"""The gradients are n times too large. Every rank computes the same loss, so each has the whole
gradient of the sum already: backward of g passes it on as it is. An all-reduce there adds up n
copies of it; that is what torch.distributed.nn.functional.all_reduce does."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient
# or: WHOLE_X = False

WHOLE_X = True


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return added_up(part)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad)


def parallel_mlp(x, w_in_shard, w_out_shard):
    x = Enter.apply(x) if WHOLE_X else x
    return Sum.apply(F.gelu(x @ w_in_shard) @ w_out_shard)
