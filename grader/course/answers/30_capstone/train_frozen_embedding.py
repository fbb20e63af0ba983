"""The embedding never changes. It is a weight of the first stage like all others: parameters() of
the whole stage has to give it."""
# exercise: train
# diagnosis: wrong_value


@torch.no_grad()
def step(stage, learning_rate):
    for layer in stage:
        for weight in layer.parameters():
            if not isinstance(layer, Embed):
                weight -= learning_rate * weight.grad
