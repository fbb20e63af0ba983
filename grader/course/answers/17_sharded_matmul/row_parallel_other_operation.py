"""The ranks' parts are put together by another operation than the sum. Each rank has some terms of
every element of the product: add the parts up, with ReduceOp.SUM."""
# exercise: row_parallel
# diagnosis: wrong_value
# or: OP = dist.ReduceOp.MIN
# or: OP = dist.ReduceOp.PRODUCT

OP = dist.ReduceOp.MAX


class Combine(Sum):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total, OP)
        return total


def row_parallel(x_shard, weight_shard):
    return Combine.apply(x_shard @ weight_shard)
