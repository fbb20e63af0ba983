"""out is cut by columns, so it has too many rows for what a rank's heads give. Cut it like down,
by rows, dim 0: the products of all ranks are then added up."""
# exercise: train
# diagnosis: exception
# earns: 0.5


def stage_of(config, group, t, tp, p, pp):
    layers = [Embed(initial_weight(config, "embedding"))] if p == 0 else []
    for i in layers_of(p, pp, config["layers"]):
        weights = {}
        for name in BLOCK:
            dim = 0 if name == "down" else 1
            weights[name] = initial_weight(config, f"{i}.{name}").chunk(tp, dim)[t].clone()
        layers.append(Block(weights, heads_of(config, tp), group))
    if p == pp - 1:
        layers.append(Head(initial_weight(config, "head")))
    return nn.Sequential(*layers)
