"""The last tokens may have no row, so token_index.max() + 1 is not the number of tokens:
num_tokens is."""
# exercise: combine_experts
# diagnosis: wrong_shape


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(int(token_index.max()) + 1, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
