# exercise: combine_experts
# diagnosis: none
import torch


def _spread(index, like):
    return index.unsqueeze(1).expand(-1, like.shape[1])


def combine_experts(rows, token_index, weight, num_tokens):
    weighted = torch.einsum("i,ij->ij", weight, rows)
    out = torch.zeros(num_tokens, rows.shape[1], dtype=rows.dtype)
    return out.scatter_add(0, _spread(token_index, rows), weighted)
