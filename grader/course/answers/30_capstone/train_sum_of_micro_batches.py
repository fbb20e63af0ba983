"""The loss is summed over micro-batches, and not averaged: divide the loss of each by their number
before its backward pass."""
# exercise: train
# diagnosis: wrong_value
# or: TOLD = "sum"

TOLD = "mean"


def loss_of(logits, targets, micro_batches):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    return loss.item() / (micro_batches if TOLD == "mean" else 1), loss
