"""The step goes uphill: subtract learning_rate · gradient from the weights."""
# exercise: train
# diagnosis: wrong_value


@torch.no_grad()
def step(stage, learning_rate):
    for weight in stage.parameters():
        weight += learning_rate * weight.grad
