# exercise: train
# diagnosis: none
# on: 30_capstone
def train(model_config, batches, dp, tp, pp):
    """Torch's optimizer, batch_isend_irecv between stages, and losses shared once at the end."""
    mesh = build_mesh(dp, tp, pp)
    d, t, p = dist.get_rank(mesh["dp"]), dist.get_rank(mesh["tp"]), dist.get_rank(mesh["pp"])
    m, width = model_config["micro_batches"], model_config["width"]

    def pull(x, into, step):
        if 0 <= p + step < pp:
            op = dist.P2POp(dist.irecv, into, group=mesh["pp"], group_peer=p + step)
            [r.wait() for r in dist.batch_isend_irecv([op])]
        return into

    def push(x, step):
        if 0 <= p + step < pp:
            op = dist.P2POp(dist.isend, x, group=mesh["pp"], group_peer=p + step)
            return dist.batch_isend_irecv([op])
        return []

    def part(name, whole):
        size = whole.shape[name not in ("out", "down")] // tp
        return whole.narrow(int(name not in ("out", "down")), t * size, size).clone()

    mine = [i for i in range(model_config["layers"]) if i * pp // model_config["layers"] == p]
    stage = nn.Sequential()
    if p == 0:
        stage.append(Embed(initial_weight(model_config, "embedding")))
    for i in mine:
        weights = {k: part(k, initial_weight(model_config, f"{i}.{k}")) for k in BLOCK}
        stage.append(
            Block(
                weights,
                model_config["heads"] // tp,
                enter=lambda x: enter(x, mesh["tp"]),
                leave=lambda x: leave(x, mesh["tp"]),
            )
        )
    if p == pp - 1:
        stage.append(Head(initial_weight(model_config, "head")))
    sgd = torch.optim.SGD(stage.parameters(), lr=model_config["learning_rate"])
    losses = torch.zeros(len(batches), dtype=torch.float64)
    for b, (inputs, targets) in enumerate(batches):
        sgd.zero_grad(set_to_none=False)
        micro_inputs = inputs.unflatten(0, (dp, m, -1))[d]
        micro_targets = targets.unflatten(0, (dp, m, -1))[d]
        kept = []
        pending = []
        for x, y in zip(micro_inputs, micro_targets):
            if p > 0:
                x = pull(x, torch.empty(*x.shape, width), -1).requires_grad_()
            out = stage(x)
            if p == pp - 1:
                out = loss_of(out, y) / (m * dp)
                losses[b] += out.item()
            else:
                pending += push(out.detach(), 1)
            kept.append((x, out))
        [r.wait() for r in pending]
        pending = []
        for x, out in reversed(kept):
            out.backward(pull(out, torch.empty_like(out), 1) if p < pp - 1 else None)
            if p > 0:
                pending += push(x.grad, -1)
        [r.wait() for r in pending]
        for weight in stage.parameters():
            dist.all_reduce(weight.grad, group=mesh["dp"])
        sgd.step()
    dist.all_reduce(losses, group=mesh["dp"])
    dist.all_reduce(losses, group=mesh["pp"])
    return losses.tolist()
