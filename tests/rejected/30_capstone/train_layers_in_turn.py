# exercise: train
# diagnosis: wrong_value
# hint: dealt out to the stages in turn
# on: 30_capstone
def my_stage(config, group, t, tp, p, pp):
    """The layers of stage p, and the t-th part of each."""
    borders = [lambda x: enter(x, group), lambda part: leave(part, group)]
    layers = [Embed(initial_weight(config, "embedding"))] if p == 0 else []
    per_stage = config["layers"] // pp
    for i in range(p, config["layers"], pp):
        weights = {}
        for name in BLOCK:
            dim = 0 if name in ("out", "down") else 1
            weights[name] = initial_weight(config, f"{i}.{name}").chunk(tp, dim)[t].clone()
        layers.append(Block(weights, config["heads"] // tp, *borders))
    if p == pp - 1:
        layers.append(Head(initial_weight(config, "head")))
    return nn.Sequential(*layers)
