# exercise: combine_experts
# diagnosis: exception
# hint: the dtype of rows
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = torch.zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
