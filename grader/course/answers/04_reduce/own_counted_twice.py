"""dst's own x counts twice, which only SUM, AVG and PRODUCT show: the total begins with it, and it
is combined with it once more. Combine only what the others send."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value
# or: AVERAGE = "then added"

AVERAGE = "divided last"


def finish(op, total, n):
    pass


def twice(x, own, op):
    n = dist.get_world_size()
    if op == R.AVG and AVERAGE == "then added":
        x /= n
    combine(op, x, own)
    if op == R.AVG and AVERAGE == "divided last":
        x /= n


once, once_on_a_tree = reduce, tree_reduce


def reduce(x, dst, op):
    own = x.clone()
    once(x, dst, op)
    if dist.get_rank() == dst:
        twice(x, own, op)


def tree_reduce(x, dst, op):
    own = x.clone()
    once_on_a_tree(x, dst, op)
    if dist.get_rank() == dst:
        twice(x, own, op)
