"""The weights never change: after the gradients are averaged, subtract learning_rate · gradient
from each of them."""
# exercise: train
# diagnosis: wrong_value


def step(stage, learning_rate):
    for weight in stage.parameters():
        weight = weight - learning_rate * weight.grad
