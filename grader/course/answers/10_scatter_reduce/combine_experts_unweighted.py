"""These are the plain sums, as if weight were not there: row i counts weight[i] times."""
# exercise: combine_experts
# diagnosis: wrong_value


def combine_experts(rows, token_index, weight, num_tokens):
    return rows.new_zeros(num_tokens, rows.shape[1]).index_add(0, token_index, rows)
