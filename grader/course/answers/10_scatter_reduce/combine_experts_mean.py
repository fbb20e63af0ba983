"""The rows of a token are averaged: return their weighted sum, without a division."""
# exercise: combine_experts
# diagnosis: wrong_value
# or: LEAST = 0

LEAST = 1


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    out = out.index_add(0, token_index, weight[:, None] * rows)
    counts = torch.bincount(token_index, minlength=num_tokens)
    return out / counts.clamp(min=LEAST)[:, None]
