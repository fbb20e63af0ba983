"""No gradient reaches rows, so the experts would learn nothing: add up rows themselves, not
rows.detach() or rows.data."""
# exercise: combine_experts
# diagnosis: wrong_gradient


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows.data)
