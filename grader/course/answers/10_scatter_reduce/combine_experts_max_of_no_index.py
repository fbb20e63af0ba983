# exercise: combine_experts
# diagnosis: exception
# hint: There may be no rows at all
# The largest of no numbers is asked for.
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    assert token_index.max() < num_tokens
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
