"""The division happens once per message, so early terms are divided again and again: add
everything up first, divide once."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: HALVES = True

HALVES = False


def all_reduce_rooted(x, op):
    root, others = root_and_others()
    if dist.get_rank() == root:
        buffer = torch.empty_like(x)
        for src in others:
            dist.recv(buffer, src)
            combine(op, x, buffer)
            if op == R.AVG:
                x /= 2 if HALVES else dist.get_world_size()
    else:
        dist.send(x, root)
    hand_out(x)
