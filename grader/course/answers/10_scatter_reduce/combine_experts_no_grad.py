# exercise: combine_experts
# diagnosis: wrong_gradient
# hint: both need their gradient
# not: the experts would | the router would
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    with torch.no_grad():
        out.index_add_(0, token_index, weight[:, None] * rows)
    return out
