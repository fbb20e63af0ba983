# exercise: combine_experts
# diagnosis: wrong_shape
# hint: Add up those that belong to one token
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    # The way out to the experts: every row gets what its token has.
    return weight[:, None] * rows[token_index]
