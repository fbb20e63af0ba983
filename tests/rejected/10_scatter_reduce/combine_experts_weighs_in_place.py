# exercise: combine_experts
# diagnosis: exception
# hint: do not write into them
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    rows *= weight[:, None]
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, rows)
