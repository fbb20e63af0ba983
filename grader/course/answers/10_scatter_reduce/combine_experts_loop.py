# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
# says: a Python loop over rows
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    for i in range(len(rows)):
        out[token_index[i]] = out[token_index[i]] + weight[i] * rows[i]
    return out
