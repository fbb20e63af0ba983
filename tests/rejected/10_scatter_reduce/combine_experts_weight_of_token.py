# exercise: combine_experts
# diagnosis: wrong_value
# hint: weights of other rows
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[token_index][:, None] * rows)
