"""For AVG the sum is not divided as a whole: dst's own x is divided and what the others send is
not, or the other way round. Add everything up first, and divide the sum once."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value
# or: DIVIDED = "own"
# or: DIVIDED = "the others, on their way"

DIVIDED = "the others"


def finish(op, total, n):
    pass


right, right_on_a_tree = reduce, tree_reduce


def apart(answer, x, dst, op):
    n, own = dist.get_world_size(), x.clone()
    if op == R.AVG and (dist.get_rank() == dst) == (DIVIDED == "own"):
        x /= n
    answer(x, dst, op)
    if dist.get_rank() != dst:
        x.copy_(own)


def reduce(x, dst, op):
    apart(right, x, dst, op)


def tree_reduce(x, dst, op):
    if DIVIDED != "the others, on their way":
        return apart(right_on_a_tree, x, dst, op)
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total / n if op == R.AVG else total, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    x.copy_(total)
