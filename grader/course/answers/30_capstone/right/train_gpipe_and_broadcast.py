# exercise: train
# diagnosis: none
# on: 30_capstone
def gpipe_order(stage, stages, micro_batches):
    numbers = range(micro_batches)
    return [("forward", i) for i in numbers] + [("backward", i) for i in numbers]


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
            gpipe_order(p, pp, m),
            inputs if p == 0 else None,
            targets if p == pp - 1 else None,
            loss_of,
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        average_in_group(stage, mesh["dp"])
        with torch.no_grad():
            for weight in stage.parameters():
                weight -= model_config["learning_rate"] * weight.grad
        total = torch.tensor(0.0 if loss is None else loss / dp)
        dist.all_reduce(total, group=mesh["dp"])
        dist.broadcast(total, group=mesh["pp"], group_src=pp - 1)
        losses.append(total.item())
    return losses
