"""dst's own x is missing from the result: combine into x, do not overwrite it."""
# exercise: reduce
# diagnosis: wrong_value
# or: TERMS = "others"

TERMS = "all"


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    parts = []
    for src in range(n):
        if src != dst:
            part = torch.empty_like(x)
            dist.recv(part, src)
            parts.append(part)
    for i, part in enumerate(parts):
        if i == 0:
            x.copy_(part)
        else:
            combine(op, x, part)
    finish(op, x, max(len(parts), 1) if TERMS == "others" else n)
