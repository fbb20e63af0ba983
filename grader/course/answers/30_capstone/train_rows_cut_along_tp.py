"""The rows of a batch are cut along another dimension than dp. Ranks that differ in t or p alone work
on the same rows, and yours have different ones: rank d along dp takes x.chunk(dp)[d]."""
# exercise: train
# diagnosis: wrong_value


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    t, p = (dist.get_rank(mesh[name]) for name in ("tp", "pp"))
    stage = stage_of(model_config, mesh["tp"], t, tp, p, pp)
    losses = []
    for batch in batches:
        inputs, targets = (x.chunk(tp)[t].chunk(model_config["micro_batches"]) for x in batch)
        clear(stage)
        shape = (*inputs[0].shape, model_config["width"])
        loss = pipeline(stage, inputs, targets, shape, mesh["pp"])
        averaged(stage, mesh)
        step(stage, model_config["learning_rate"])
        losses.append(told(loss, mesh))
    return losses
