"""This is the approximation x·sigmoid(1.702·x). The exact GELU is torch.nn.functional.gelu(x)."""
# exercise: parallel_mlp
# diagnosis: wrong_value


def parallel_mlp(x, w_in_shard, w_out_shard):
    hidden = Enter.apply(x) @ w_in_shard
    return Leave.apply((hidden * torch.sigmoid(1.702 * hidden)) @ w_out_shard)
