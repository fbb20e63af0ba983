# exercise: combine_experts
# diagnosis: none
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = torch.zeros((num_tokens, rows.size(-1)), dtype=rows.dtype, device=rows.device)
    out.index_add_(0, token_index, rows * weight.unsqueeze(-1))
    return out
