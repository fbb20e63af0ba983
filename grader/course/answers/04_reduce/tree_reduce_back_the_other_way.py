"""It fails only where dst is not rank 0. If v = (rank − dst) % n is a place in the tree, then place v is
rank (v + dst) % n, not (v − dst) % n, in the send and in the recv."""
# exercise: tree_reduce
# diagnosis: deadlock
# earns: 0.25
# or: SEND = 1
# or: RECV = 1

#: What dst is multiplied with where a place becomes a rank again.
SEND = -1
RECV = -1


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + SEND * dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + RECV * dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
