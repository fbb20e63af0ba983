"""Two dtypes meet there. Buffers need the dtype of what goes into them: x.new_zeros(shape) and
torch.empty_like(x) have it, torch.zeros(shape) alone makes float32."""
# exercise: column_parallel
# diagnosis: exception


def gather(part, lengths, dim, arrange=side_by_side):
    mine = padded(part.detach(), max(lengths), dim).contiguous()
    parts = [torch.empty(mine.shape) for _ in lengths]
    dist.all_gather(parts, mine)
    return arrange(parts, lengths, dim)


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    return Join.apply(y, widths_of(weight_shard), y.dim() - 1, side_by_side)
