"""The rows of a batch are cut along another dimension than dp. Ranks that differ in t or p alone work
on the same rows, and yours have different ones: rank d along dp takes x.chunk(dp)[d]."""
# exercise: train
# diagnosis: exception
# or: AXIS = "pp"

AXIS = "tp"
MICRO_BATCHES = []  # how many there should be, though there may be fewer rows
right = one_f_one_b


def one_f_one_b(stage, stages, micro_batches):
    return right(stage, stages, MICRO_BATCHES[0])


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    t, p = (dist.get_rank(mesh[name]) for name in ("tp", "pp"))
    stage = stage_of(model_config, mesh["tp"], t, tp, p, pp)
    part, parts = dist.get_rank(mesh[AXIS]), dist.get_world_size(mesh[AXIS])
    losses, MICRO_BATCHES[:] = [], [model_config["micro_batches"]]
    for batch in batches:
        inputs, targets = (x.chunk(parts)[part].chunk(MICRO_BATCHES[0]) for x in batch)
        clear(stage)
        shape = (*inputs[0].shape, model_config["width"])
        loss = pipeline(stage, inputs, targets, shape, mesh["pp"])
        averaged(stage, mesh)
        step(stage, model_config["learning_rate"])
        losses.append(told(loss, mesh))
    return losses
