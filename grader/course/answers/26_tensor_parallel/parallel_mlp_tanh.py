"""This is the tanh approximation of GELU. The exact one is torch.nn.functional.gelu(x), without
approximate."""
# exercise: parallel_mlp
# diagnosis: wrong_value


def parallel_mlp(x, w_in_shard, w_out_shard):
    hidden = F.gelu(Enter.apply(x) @ w_in_shard, approximate="tanh")
    return Leave.apply(hidden @ w_out_shard)
