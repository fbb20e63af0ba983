"""SUM is right, so the chunks reach the right ranks. But MIN and MAX give your own chunks[rank]:
torch.minimum(a, b) makes a new tensor, and leaves a as it was. Keep what it makes, as with
torch.minimum(a, b, out=a)."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def reduce_scatter(chunks, op):
    total = direct(chunks, op)
    if op in (R.MIN, R.MAX):
        total = chunks[dist.get_rank()].clone()
    return finished(total, op)


def ring_reduce_scatter(chunks, op):
    total = ring(chunks, op)
    if op in (R.MIN, R.MAX):
        total = chunks[dist.get_rank()].clone()
    return finished(total, op)
