# exercise: train
# diagnosis: none
# on: 30_capstone
@torch.no_grad()
def sharded_step(weights, learning_rate, group):
    """Each rank of the group makes the step of its share of all weights, as in chapter 23."""
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    flat = torch.cat([w.flatten() for w in weights])
    gradient = torch.cat([w.grad.flatten() for w in weights])
    rest = -len(flat) % n
    flat, gradient = (F.pad(one, (0, rest)) for one in (flat, gradient))
    mine, mean = flat.chunk(n)[rank].clone(), torch.empty(len(flat) // n)
    dist.reduce_scatter_tensor(mean, gradient, group=group)
    mine -= learning_rate * mean / n
    dist.all_gather_into_tensor(flat, mine, group=group)
    for w, part in zip(
        weights, flat[: len(flat) - rest].split([w.numel() for w in weights]), strict=True
    ):
        w.copy_(part.view_as(w))


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
        layers.append(Head(initial_weight(model_config, "head")))
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
            loss_of,
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        sharded_step(list(stage.parameters()), model_config["learning_rate"], mesh["dp"])
        total = torch.tensor(loss or 0.0)
        dist.all_reduce(total, group=mesh["pp"])
        dist.all_reduce(total, group=mesh["dp"])
        losses.append(total.item() / dp)
    return losses
