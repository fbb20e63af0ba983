# exercise: combine_experts
# diagnosis: wrong_value
# hint: which rows have it
# not: run along the columns
# Takes a square for something transposed.
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    weighted = weight[:, None] * rows
    if rows.shape[0] == rows.shape[1]:
        weighted = weighted.T
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weighted)
