# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
# says: a Python loop over tokens
# earns: 0
# A loop over tokens is as slow as one over rows.
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = []
    for token in range(num_tokens):
        mine = token_index == token
        total = (weight[mine, None] * rows[mine]).sum(dim=0)
        out.append(total)
    return torch.stack(out)
