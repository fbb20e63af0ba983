# exercise: all_to_all_uneven
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    arriving = torch.empty(len(counts), dtype=torch.int64)
    dist.all_to_all_single(arriving, torch.tensor(counts))
    result = rows.new_empty((int(arriving.sum()), *rows.shape[1:]))
    dist.all_to_all_single(result, rows, arriving.tolist(), counts)
    return result
