"""Rows get the weights of other rows. weight[i] belongs to rows[i], not to token i."""
# exercise: combine_experts
# diagnosis: wrong_value


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[token_index][:, None] * rows)
