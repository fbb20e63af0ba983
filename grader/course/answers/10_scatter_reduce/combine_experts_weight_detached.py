"""No gradient reaches weight, so the router would learn nothing: multiply with weight itself, not
with weight.detach(), weight.data or weight.tolist()."""
# exercise: combine_experts
# diagnosis: wrong_gradient
# not: the experts would


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight.detach()[:, None] * rows)
