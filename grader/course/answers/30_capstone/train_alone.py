# exercise: train
# diagnosis: too_few_bytes
# hint: Ranks that share a layer
# earns: 0.5
# on: 30_capstone
def train(model_config, batches, dp, tp, pp):
    layers = [Embed(initial_weight(model_config, "embedding"))]
    for i in range(model_config["layers"]):
        weights = {name: initial_weight(model_config, f"{i}.{name}") for name in BLOCK}
        layers.append(Block(weights, model_config["heads"], lambda x: x, lambda y: y))
    model = nn.Sequential(*layers, Head(initial_weight(model_config, "head")))
    losses = []
    for inputs, targets in batches:
        model.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= model_config["learning_rate"] * weight.grad
        losses.append(loss.item())
    return losses
