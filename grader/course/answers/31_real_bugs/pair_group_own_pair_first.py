# exercise: pair_group
# diagnosis: order_mismatch
# hint: the same groups in the same order
import torch.distributed as dist


def pair_group(pairs):
    rank = dist.get_rank()
    groups = {pair: dist.new_group(pair) for pair in sorted(pairs, key=lambda p: rank not in p)}
    return next((groups[pair] for pair in pairs if rank in pair), None)
