# exercise: combine_experts
# diagnosis: wrong_shape
# hint: num_tokens is
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(int(token_index.max()) + 1, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
