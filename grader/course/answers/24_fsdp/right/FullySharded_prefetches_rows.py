# exercise: FullySharded
# diagnosis: none
import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


class Unsharded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, unit):
        ctx.unit = unit
        return unit.take()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.unit.reduce(gradient), None


class Unit:
    """One parameter, of which every rank has some rows; the next one is gathered ahead."""

    def __init__(self, owner, p, name, layer):
        self.owner, self.layer, self.name = owner, layer, name
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self.dtype, self.shape = owner.compute_dtype or p.dtype, p.shape
        table = p.data.reshape(len(p), -1)
        self.rows = [len(part) for part in torch.arange(len(p)).tensor_split(self.n)]
        self.width = table.shape[1]
        self.shard = nn.Parameter(table.tensor_split(self.n)[self.rank].clone())
        self.flight = self.whole = None

    def start(self):
        """Begin to gather; ranks with a row fewer send a row of padding."""
        if self.flight is not None or self.whole is not None:
            return
        mine = self.shard.detach().new_zeros(max(self.rows), self.width, dtype=self.dtype)
        mine[: len(self.shard)] = self.shard.detach()
        table = mine.new_empty(self.n * len(mine), self.width)
        self.flight = table, dist.all_gather_into_tensor(table, mine, async_op=True)

    def take(self):
        if self.whole is None:
            self.start()
            (table, request), self.flight = self.flight, None
            request.wait()
            parts = table.split(max(self.rows))
            whole = torch.cat([part[:rows] for part, rows in zip(parts, self.rows)])
            self.whole = whole.view(self.shape)
        return self.whole

    def free(self):
        self.whole = None

    def reduce(self, gradient):
        self.free()
        table = gradient.reshape(-1, self.width).to(self.shard.dtype).tensor_split(self.n)
        blocks = self.shard.detach().new_zeros(self.n, max(self.rows), self.width)
        for block, part in zip(blocks, table):
            block[: len(part)] = part
        mean = torch.empty_like(blocks[0])
        dist.reduce_scatter_tensor(mean, blocks.flatten(0, 1))
        return mean[: self.rows[self.rank]] / self.n


class FullySharded(nn.Module):
    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        self.units, self.order = {}, []
        for layer in module.modules():
            parameters = list(layer.named_parameters(recurse=False))
            units = []
            for name, p in parameters:
                dist.broadcast(p.data, 0)
                if p.numel() > 128:
                    units.append(Unit(self, p, name, layer))
                    setattr(layer, name, units[-1].shard)
                    self.units[units[-1].shard] = units[-1]
            if units:
                self.order.append(units)
            if parameters:
                layer.forward = self.instead(layer, layer.forward, units)

    def ahead(self, units, step):
        """Start the gathers of the layer that comes next in this direction."""
        place = self.order.index(units) + step
        if 0 <= place < len(self.order):
            for unit in self.order[place]:
                unit.start()

    def cast(self, x):
        return x.to(self.compute_dtype) if self.compute_dtype and x.is_floating_point() else x

    def instead(self, layer, compute, units):
        def forward(*inputs):
            shards = dict(layer._parameters)
            for name, p in layer.named_parameters(recurse=False):
                unit = self.units.get(p)
                layer._parameters[name] = Unsharded.apply(p, unit) if unit else self.cast(p)
            memory = {unit.whole.untyped_storage()._cdata: unit for unit in units}
            if units:
                self.ahead(units, 1)

            def pack(x):
                unit = memory.get(x.untyped_storage()._cdata)
                return (unit, x.shape, x.stride(), x.storage_offset()) if unit else x

            def unpack(x):
                if torch.is_tensor(x):
                    return x
                whole = x[0].take()
                self.ahead(units, -1)
                return torch.as_strided(whole, *x[1:])

            with saved_tensors_hooks(pack, unpack):
                output = compute(*(self.cast(x) for x in inputs))
            for name, p in shards.items():
                layer._parameters[name] = p
            for unit in units:
                unit.free()
            return output

        return forward

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish_gradient_synchronization(self):
        for unit in self.units.values():  # what was gathered ahead and not asked for
            if unit.flight is not None:
                unit.flight[1].wait()
                unit.flight = None
            unit.free()
        for p in self.parameters():
            if p not in self.units:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    def full_state_dict(self):
        state = self.module.state_dict()
        for name, p in self.module.named_parameters():
            if p in self.units:
                unit = self.units[p]
                pieces = [p.new_zeros(max(unit.rows), unit.width) for _ in range(unit.n)]
                mine = torch.zeros_like(pieces[0])
                mine[: len(p)] = p.detach()
                dist.all_gather(pieces, mine)
                table = torch.cat([piece[:rows] for piece, rows in zip(pieces, unit.rows)])
                state[name] = table.view(unit.shape)
        return dict(state)
