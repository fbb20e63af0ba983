"""One x is missing from the result, and it is the root's own: start from x, not from zeros, and
combine into it."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: ZEROS, ALONE = True, False
# or: ZEROS, ALONE = False, False

ZEROS, ALONE = True, True


def all_reduce_rooted(x, op):
    root, others = root_and_others()
    if dist.get_rank() != root:
        dist.send(x, root)
    elif others or ALONE:
        parts = [torch.zeros_like(x)] if ZEROS else []
        for src in others:
            parts.append(torch.empty_like(x))
            dist.recv(parts[-1], src)
        total = parts[0].clone()
        for part in parts[1:]:
            combine(op, total, part)
        if op == R.AVG:
            total /= dist.get_world_size() if ZEROS else len(others)
        x.copy_(total)
    hand_out(x)
