# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    # The loop over the rows of a token is one over rows, too.
    out = []
    for token in range(num_tokens):
        total = rows.new_zeros(rows.shape[1])
        for i in (token_index == token).nonzero().flatten():
            total = total + weight[i] * rows[i]
        out.append(total)
    return torch.stack(out)
