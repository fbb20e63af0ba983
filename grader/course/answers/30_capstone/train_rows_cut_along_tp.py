"""The rows of a batch are cut along another dimension than dp. Ranks that differ in t or p alone work
on the same rows, and yours have different ones: rank d along dp takes x.chunk(dp)[d]."""
# exercise: train
# diagnosis: wrong_value
# or: CUT = "dp, by rank"
# or: CUT = "dp, by t"

CUT = "tp"


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    t, p = (dist.get_rank(mesh[name]) for name in ("tp", "pp"))
    stage = stage_of(model_config, mesh["tp"], t, tp, p, pp)
    parts = tp if CUT == "tp" else dp
    part = (dist.get_rank() if CUT == "dp, by rank" else t) % parts
    losses = []
    for batch in batches:
        inputs, targets = (x.chunk(parts)[part].chunk(model_config["micro_batches"]) for x in batch)
        clear(stage)
        shape = (*inputs[0].shape, model_config["width"])
        loss = pipeline(stage, inputs, targets, shape, mesh["pp"])
        averaged(stage, mesh)
        step(stage, model_config["learning_rate"])
        losses.append(told(loss, mesh))
    return losses
