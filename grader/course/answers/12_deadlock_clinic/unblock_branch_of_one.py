"""That is the loss of one rank. All of them count: add them up, as all_reduce does unless you give it
another op, and divide by the number of ranks.
"""
# exercise: unblock_branch
# diagnosis: wrong_value
# or: WHOSE = "the largest"
# or: WHOSE = "the smallest"
import torch
import torch.distributed as dist

WHOSE = "of the rank that logs"


def unblock_branch(loss, log):
    one = loss.clone()
    if WHOSE == "of the rank that logs":
        one = one if log else torch.zeros_like(one)
        dist.all_reduce(one)
    else:
        dist.all_reduce(one, dist.ReduceOp.MAX if WHOSE == "the largest" else dist.ReduceOp.MIN)
    return one
