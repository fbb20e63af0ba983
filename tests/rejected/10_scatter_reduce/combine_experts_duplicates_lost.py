# exercise: combine_experts
# diagnosis: wrong_value
# hint: reads all the old values before it
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    out[token_index] += weight[:, None] * rows
    return out
