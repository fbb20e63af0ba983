"""A token that several rows belong to has only the last of them. An assignment replaces what was
there, and out[token_index] += reads all the old values before it writes any: index_add adds them
all."""
# exercise: combine_experts
# diagnosis: wrong_value


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    out[token_index] += weight[:, None] * rows
    return out
