"""The number of rounds, or the largest step, is rounded down, so some ranks never send: 5 ranks
need three rounds, as many as 8. Let the steps be all powers of two below n.
"""
# exercise: tree_reduce
# diagnosis: wrong_value
# or: STEPS = "from n // 2 down"
# or: WRITES_BACK = "every rank"
# or: STEPS = "from n // 2 down"; WRITES_BACK = "every rank"

STEPS = "int(log2(n))"
WRITES_BACK = "dst"


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer = x.clone(), torch.empty_like(x)
    if STEPS == "int(log2(n))":
        for i in range(n.bit_length() - 1):
            step = 2**i
            if v & step:
                dist.send(total, (v - step + dst) % n)
                return
            if v + step < n:
                dist.recv(buffer, (v + step + dst) % n)
                combine(op, total, buffer)
    else:
        step = n // 2
        while step >= 1:
            if step <= v < 2 * step:
                dist.send(total, (v - step + dst) % n)
                return
            if v < step and v + step < n:
                dist.recv(buffer, (v + step + dst) % n)
                combine(op, total, buffer)
            step //= 2
    if v == 0 or WRITES_BACK == "every rank":
        finish(op, total, n)
        x.copy_(total)
