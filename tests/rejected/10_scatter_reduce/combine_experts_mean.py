# exercise: combine_experts
# diagnosis: wrong_value
# hint: are averaged
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    out = out.index_add(0, token_index, weight[:, None] * rows)
    counts = torch.bincount(token_index, minlength=num_tokens).clamp(min=1)
    return out / counts[:, None]
