"""One buffer holds what is sent and what is received, so the chunk that arrives overwrites the one
that is still on its way. Send the chunk itself, chunks[send], and receive into a buffer of its
own."""
# exercise: ring_all_reduce
# diagnosis: buffer_race
# One buffer for what is sent and for what is received.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = cut(x, n)
    buffer = x.new_empty(len(chunks[0]))
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        going = buffer[: len(out)].copy_(out)
        request = dist.isend(going, right)
        came = buffer[: len(mine)]
        dist.recv(came, left)
        request.wait()
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        request = dist.isend(out, right)
        dist.recv(mine, left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n
