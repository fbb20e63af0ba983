"""Each rank has made a step with its own gradients. They have to be averaged over the ranks first.
"""
# exercise: ShardedAdamW
# diagnosis: wrong_value
# or: SKIPS = False

SKIPS = True


class ShardedAdamW(Sharded):
    def __init__(self, params, **options):
        super().__init__(params, **options)
        self.rows = []
        self.m = {p: torch.zeros_like(p) for p in self.params}
        self.v = {p: torch.zeros_like(p) for p in self.params}

    @torch.no_grad()
    def step(self):
        exist = {p for p in self.params if p.grad is not None} if SKIPS else self.have_gradients()
        for p in self.params:
            if p in exist:
                grad = torch.zeros_like(p) if p.grad is None else p.grad
                self.update(p, grad, self.m[p], self.v[p], self.number(p))
