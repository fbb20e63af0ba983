# exercise: train
# diagnosis: none
# on: 30_capstone
class CutHead(nn.Module):
    """Some columns of the head."""

    def __init__(self, weight, group):
        super().__init__()
        self.weight, self.group = nn.Parameter(weight), group

    def forward(self, x):
        return enter(norm(x), self.group) @ self.weight


def cut_loss(logits, targets, group):
    """The mean loss, of logits that are cut by the vocabulary."""
    logits, targets = logits.flatten(0, 1), targets.flatten()
    widths = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size(group))]
    dist.all_gather(widths, torch.tensor([logits.shape[1]]), group=group)
    start = int(sum(widths[: dist.get_rank(group)]))
    top = logits.detach().amax(1)
    dist.all_reduce(top, op=dist.ReduceOp.MAX, group=group)
    total = leave((logits - top[:, None]).exp().sum(1), group)
    here = (targets >= start) & (targets < start + logits.shape[1])
    places = (targets - start).clamp(0, logits.shape[1] - 1)
    own = logits.gather(1, places[:, None])[:, 0] * here
    return (total.log() + top - leave(own, group)).mean()


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    d, t, p = (dist.get_rank(mesh[name]) for name in ("dp", "tp", "pp"))
    per_stage = model_config["layers"] // pp
    layers = []
    if p == 0:
        layers.append(Embed(initial_weight(model_config, "embedding")))
    for i in range(p * per_stage, (p + 1) * per_stage):
        shards = {}
        for name in BLOCK:
            whole = initial_weight(model_config, f"{i}.{name}")
            dim = 0 if name in ("out", "down") else 1
            shards[name] = whole.chunk(tp, dim)[t].clone()
        borders = [lambda x: enter(x, mesh["tp"]), lambda y: leave(y, mesh["tp"])]
        layers.append(Block(shards, model_config["heads"] // tp, *borders))
    if p == pp - 1:
        head = initial_weight(model_config, "head").tensor_split(tp, 1)[t].clone()
        layers.append(CutHead(head, mesh["tp"]))
    stage = nn.Sequential(*layers)
    m, losses = model_config["micro_batches"], []
    for inputs, targets in batches:
        inputs, targets = (x.chunk(dp)[d].chunk(m) for x in (inputs, targets))
        for weight in stage.parameters():
            weight.grad = None
        loss = pipeline_in_group(
            stage,
            one_f_one_b(p, pp, m),
            inputs if p == 0 else None,
            targets if p == pp - 1 else None,
            lambda logits, right: cut_loss(logits, right, mesh["tp"]),
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        average_in_group(stage, mesh["dp"])
        with torch.no_grad():
            for weight in stage.parameters():
                weight -= model_config["learning_rate"] * weight.grad
        total = torch.tensor(loss or 0.0)
        dist.all_reduce(total, group=mesh["pp"])
        dist.all_reduce(total, group=mesh["dp"])
        losses.append(total.item() / dp)
    return losses
