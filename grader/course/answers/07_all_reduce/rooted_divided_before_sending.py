"""With AVG the other ranks divide their x before they send it, and the root divides the sum once
more. Let them send x as it is, and divide the sum once, on the root."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    n, root = dist.get_world_size(), root_and_others()[0]
    if op == R.AVG and dist.get_rank() != root:
        x /= n
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root:
        x /= n
    hand_out(x)
