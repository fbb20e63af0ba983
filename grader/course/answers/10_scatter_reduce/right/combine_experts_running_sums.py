# exercise: combine_experts
# diagnosis: none
import torch


def combine_experts(rows, token_index, weight, num_tokens):
    order = token_index.argsort()
    running = (weight[:, None] * rows)[order].cumsum(0)
    running = torch.cat(
        [
            torch.zeros_like(running[:1]) if len(rows) else running.new_zeros(1, rows.shape[1]),
            running,
        ]
    )
    ends = torch.bincount(token_index, minlength=num_tokens).cumsum(0)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    return running[ends] - running[starts]
