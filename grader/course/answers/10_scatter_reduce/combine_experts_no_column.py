"""weight has one number per row: weight[:, None] makes a column of it, and that multiplies the
rows.
"""
# exercise: combine_experts
# diagnosis: exception
# or: FIRST = "rows"

FIRST = "weight"


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    weighed = weight * rows if FIRST == "weight" else rows * weight
    return out.index_add(0, token_index, weighed)
