# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
# says: 256 rows
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    weighted = torch.stack([w * row for w, row in zip(weight, rows)])
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weighted)
