# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
# says: operations of torch
# A loop without a line of its own: map calls torch.mul once for each row.
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    if not len(rows):
        return out
    weighed = torch.stack(list(map(torch.mul, weight.unbind(), rows.unbind())))
    return out.index_add(0, token_index, weighed)
