# exercise: combine_experts
# diagnosis: none
# One product: entry (t, i) of the matrix is weight[i] if row i belongs to token t.
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    belongs = torch.arange(num_tokens)[:, None] == token_index[None, :]
    return torch.where(belongs, weight, torch.zeros_like(weight)) @ rows
