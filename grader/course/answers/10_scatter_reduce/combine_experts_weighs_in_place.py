"""rows and weight belong to the caller, who needs their gradients: do not write into them.
weight[:, None] * rows makes a new tensor.
"""
# exercise: combine_experts
# diagnosis: exception
# or: WAY = "rows in place"
# or: WAY = "into rows[:]"

WAY = "rows *="


def combine_experts(rows, token_index, weight, num_tokens):
    if WAY == "into rows[:]":
        rows[:] = weight[:, None] * rows
    elif WAY == "rows in place":
        rows.mul_(weight[:, None])
    else:
        rows *= weight[:, None]
    return rows.new_zeros(num_tokens, rows.shape[1]).index_add(0, token_index, rows)
