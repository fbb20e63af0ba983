# exercise: train
# diagnosis: too_many_bytes
# hint: larger than a micro-batch's activations
# earns: 0.5
# on: 30_capstone
def train(model_config: dict, batches: list, dp: int, tp: int, pp: int) -> list[float]:
    """Train on a mesh of ranks; the loss of each batch."""
    mesh = build_mesh(dp, tp, pp)
    d, t, p = (dist.get_rank(mesh[name]) for name in ("dp", "tp", "pp"))
    stage = my_stage(model_config, mesh["tp"], t, tp, p, pp)
    m, losses = 1, []
    for inputs, targets in batches:
        inputs, targets = (rows.chunk(dp)[d].chunk(m) for rows in (inputs, targets))
        stage.zero_grad()
        loss = pipeline_in_group(
            stage,
            one_f_one_b(p, pp, m),
            inputs if p == 0 else None,
            targets if p == pp - 1 else None,
            loss_of,
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        average_in_group(stage, mesh["dp"])
        step(stage.parameters(), model_config["learning_rate"])
        total = torch.tensor(loss or 0.0)  # only the last stage knows it
        dist.all_reduce(total, group=mesh["pp"])
        dist.all_reduce(total, group=mesh["dp"])
        losses.append(total.item() / dp)
    return losses
