"""A message needs a tensor whose numbers lie in one piece in memory, and those of a slice, a
transpose and many gradients do not: call .contiguous() first.
"""
# exercise: sequence_shard
# diagnosis: exception


class Sent(Split):
    @staticmethod
    def backward(ctx, grad):
        rank, n = dist.get_rank(), dist.get_world_size()
        shape = list(grad.shape)
        shape[ctx.dim] = ctx.length
        whole = grad.new_empty(shape)
        parts = whole.tensor_split(n, ctx.dim)
        parts[rank].copy_(grad)
        sends = [dist.isend(grad, other) for other in range(n) if other != rank]
        for other in range(n):
            if other != rank:
                dist.recv(parts[other], other)
        for request in sends:
            request.wait()
        return whole, None


def sequence_shard(x, dim=1):
    return Sent.apply(x, dim)
