# exercise: combine_experts
# diagnosis: none
def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_put((token_index,), weight[:, None] * rows, accumulate=True)
