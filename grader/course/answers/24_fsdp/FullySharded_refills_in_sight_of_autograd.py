"""Autograd has noticed that a tensor it saved was changed in place. If that is a weight whose memory
you fill again for backward, write into its .data: autograd does not watch that."""
# exercise: FullySharded
# diagnosis: exception


class FullySharded(ShardedModule):
    def fill(self, row, shard):
        row.untyped_storage().resize_(row.nbytes)
        mine, n = shard.detach().to(row.dtype), dist.get_world_size()
        whole = torch.empty_like(row)
        dist.all_gather_into_tensor(whole, mine)
        # gloo writes each rank's part, and autograd's message says how often was written
        for part, gathered in zip(row.chunk(n), whole.chunk(n)):
            part.copy_(gathered)

    def refill(self, rows):
        for p, row in rows.items():
            self.fill(row, p)

    def wrap(self, layer, compute):
        def forward(*inputs):
            own, rows = dict(layer._parameters), {}
            for name, p in layer.named_parameters(recurse=False):
                if p in self.shapes:
                    row = rows[p] = p.new_empty(
                        len(p) * dist.get_world_size(), dtype=self.compute_dtype or p.dtype
                    ).detach()
                    self.fill(row, p)
                    weight = row[: self.shapes[p].numel()].view(self.shapes[p]).detach()
                    weight.requires_grad_(p.requires_grad)
                    weight.register_post_accumulate_grad_hook(
                        lambda weight, row=row, p=p: self.move_gradient(weight, row, p)
                    )
                else:
                    weight = self.cast(p)
                layer._parameters[name] = weight
            result = compute(*map(self.cast, inputs))
            layer._parameters.update(own)
            for row in rows.values():
                row.untyped_storage().resize_(0)
            if result.requires_grad:
                result.register_hook(lambda _: self.refill(rows))
            return result

        return forward

    def move_gradient(self, weight, row, p):
        row.untyped_storage().resize_(0)
        mine = self.reduce(p, weight.grad)
        p.grad, weight.grad = mine if p.grad is None else p.grad + mine, None
