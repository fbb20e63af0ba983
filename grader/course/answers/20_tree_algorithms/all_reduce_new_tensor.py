"""x is unchanged, although messages were exchanged. Is the result in another tensor? `x = x + y`
and clone() make new ones; x += y writes into x."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    mine, came = x.clone(), torch.empty_like(x)
    if rank >= power:
        dist.send(mine, rank - power)
        dist.recv(mine, rank - power)
    else:
        if rank + power < n:
            dist.recv(came, rank + power)
            combine(op, mine, came)
        for k in range(power.bit_length() - 1):
            exchange(mine, came, rank ^ (1 << k))
            combine(op, mine, came)
        if rank + power < n:
            dist.send(mine, rank + power)
    divide(op, mine, n)


def halving_doubling_all_reduce(x, op):
    recursive_doubling_all_reduce(x, op)
