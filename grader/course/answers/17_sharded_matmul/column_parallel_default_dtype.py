"""torch.zeros and torch.empty make float32 if no dtype is given: x.new_zeros(shape) and
torch.empty_like(x) have that of x."""
# exercise: column_parallel
# diagnosis: wrong_dtype


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    widths, rank = widths_of(weight_shard), dist.get_rank()
    whole = torch.zeros(*y.shape[:-1], sum(widths))
    start = sum(widths[:rank])
    whole[..., start : start + widths[rank]] = y
    dist.all_reduce(whole)
    return whole
