"""SUM is right, but with another operation x on dst is as it was. torch.minimum(x, buffer) and x *
buffer make new tensors that the caller never sees: write into x, as with torch.minimum(x, buffer,
out=x) or x *= buffer.
"""
# exercise: reduce
# diagnosis: wrong_value
# or: PRODUCT = "a new tensor"

PRODUCT = "in place"


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == R.MIN:
            x = torch.minimum(x, buffer)
        elif op == R.MAX:
            x = torch.maximum(x, buffer)
        elif op == R.PRODUCT and PRODUCT == "in place":
            x *= buffer
        elif op == R.PRODUCT:
            x = x * buffer
        else:
            x += buffer
    if op == R.AVG:
        x /= n
