"""The ranks' parts of the result are put together by another operation than the sum: add them up, with
ReduceOp.SUM."""
# exercise: parallel_mlp
# diagnosis: wrong_value
# or: OP = dist.ReduceOp.MIN
# or: OP = dist.ReduceOp.PRODUCT

OP = dist.ReduceOp.MAX


class Combine(Leave):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total, OP)
        return total


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Combine.apply(F.gelu(Enter.apply(x) @ w_in_shard) @ w_out_shard)
