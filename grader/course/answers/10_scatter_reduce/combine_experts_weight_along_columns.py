"""The weights run along the columns, which is only possible because there are as many columns as
rows: weight[:, None] * rows gives each row its weight."""
# exercise: combine_experts
# diagnosis: wrong_value


def combine_experts(rows, token_index, weight, num_tokens):
    # Tries what fits.
    if rows.shape[1] == len(weight):
        weighted = rows * weight
    else:
        weighted = rows * weight[:, None]
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weighted)
