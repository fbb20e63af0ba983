"""The weights have the shape (in, out), so the product is x @ w_in_shard. F.linear and nn.Linear
expect (out, in)."""
# exercise: parallel_mlp
# diagnosis: exception
# or: LINEAR = False

LINEAR = True


def parallel_mlp(x, w_in_shard, w_out_shard):
    if LINEAR:
        return Leave.apply(F.linear(F.gelu(F.linear(Enter.apply(x), w_in_shard)), w_out_shard))
    return Leave.apply(F.gelu(Enter.apply(x) @ w_in_shard.T) @ w_out_shard.T)
