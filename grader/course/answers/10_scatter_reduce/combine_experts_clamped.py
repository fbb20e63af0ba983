# exercise: combine_experts
# diagnosis: wrong_value
# hint: divided by their sum
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1]).index_add(
        0, token_index, weight[:, None] * rows
    )
    total = weight.new_zeros(num_tokens).index_add(0, token_index, weight)
    return out / total.clamp(min=1e-9)[:, None]
