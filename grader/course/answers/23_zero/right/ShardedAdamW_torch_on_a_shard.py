# exercise: ShardedAdamW
# diagnosis: none
import torch
import torch.distributed as dist


class ShardedAdamW:
    """The parameters become views of one buffer, and torch's AdamW trains pieces of a shard of it."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        n, rank = dist.get_world_size(), dist.get_rank()
        total = sum(p.numel() for p in self.params)
        size = -(-total // n)
        self.weights = self.params[0].detach().new_zeros(n * size)
        self.places, pieces, start = [], [], 0
        for p in self.params:
            place = slice(start, start + p.numel())
            self.weights[place] = p.detach().flatten()
            p.data = self.weights[place].view_as(p)
            self.places.append(place)
            start = place.stop
            first, last = (
                min(max(edge, rank * size), (rank + 1) * size) for edge in (place.start, place.stop)
            )
            pieces.append(torch.nn.Parameter(self.weights[first:last]))
            pieces[-1].place = slice(first - rank * size, last - rank * size)
        self.mine = self.weights[rank * size : (rank + 1) * size]
        self.pieces = pieces
        self.inner = torch.optim.AdamW(
            pieces, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay
        )

    def step(self):
        n = dist.get_world_size()
        flags = self.weights.new_tensor([p.grad is not None for p in self.params])
        table = [torch.empty_like(flags) for _ in range(n)]
        dist.all_gather(table, flags)
        flat = torch.zeros_like(self.weights)
        for p, place in zip(self.params, self.places):
            if p.grad is not None:
                flat[place] = p.grad.flatten() / n
        mean = torch.empty_like(self.mine)
        dist.reduce_scatter(mean, list(flat.chunk(n)))
        for piece, exists in zip(self.pieces, sum(table)):
            piece.grad = mean[piece.place] if exists else None
        self.inner.step()
        self.inner.zero_grad()
        dist.all_gather(list(self.weights.chunk(n)), self.mine.clone())

    def zero_grad(self):
        for p in self.params:
            p.grad = None
