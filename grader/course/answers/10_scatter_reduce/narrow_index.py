"""The index of scatter_add and scatter_reduce is not broadcast: one that is a column wide fills the
first column alone. Make it as wide as what is added, index[:, None].expand_as(...), or take
index_add, which adds whole rows.
"""
# exercise: segment_mean, combine_experts
# diagnosis: exception
# or: WAY = "scatter_reduce"

WAY = "scatter_add"


def add_rows(zeros, index, rows):
    if WAY == "scatter_reduce":
        return zeros.scatter_reduce(0, index[:, None], rows, "sum")
    return zeros.scatter_add(0, index[:, None], rows)


def segment_mean(values, segment_ids, num_segments):
    sums = add_rows(values.new_zeros(num_segments, values.shape[1]), segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return add_rows(out, token_index, weight[:, None] * rows)
