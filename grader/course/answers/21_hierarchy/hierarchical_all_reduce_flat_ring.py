# exercise: hierarchical_all_reduce
# diagnosis: too_many_bytes
# hint: A ring of all ranks does that at the border
# earns: 0.5
import torch
import torch.distributed as dist


def groups(k):
    n = dist.get_world_size()
    node, _ = dist.new_subgroups(k)
    across, _ = dist.new_subgroups_by_enumeration([list(range(i, n, k)) for i in range(k)])
    return node, across


def sum_for_average(op):
    return dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op


def padded_to(x, k):
    padded = x.new_zeros(-(-x.numel() // k) * k)
    padded[: x.numel()] = x.flatten()
    return padded


COMBINE = {"SUM": torch.add, "AVG": torch.add, "MIN": torch.minimum, "MAX": torch.maximum}


def hierarchical_all_reduce(x, op, ranks_per_node):
    rank, n, R = dist.get_rank(), dist.get_world_size(), dist.ReduceOp
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    for step in range(2 * (n - 1)):
        out, into = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        came = torch.empty_like(into)
        request = dist.isend(out, right)
        dist.recv(came, left)
        request.wait()
        if step >= n - 1:
            into.copy_(came)
        elif op == R.MIN:
            torch.minimum(into, came, out=into)
        elif op == R.MAX:
            torch.maximum(into, came, out=into)
        elif op == R.PRODUCT:
            into.mul_(came)
        else:
            into.add_(came)
    if op == R.AVG:
        x /= n
