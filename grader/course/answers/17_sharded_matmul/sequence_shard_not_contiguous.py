"""A message needs a tensor that is contiguous in memory, and a slice, a transpose or a gradient
often is not: call .contiguous() first.
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
