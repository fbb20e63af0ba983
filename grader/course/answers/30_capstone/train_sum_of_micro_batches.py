"""The loss is summed over micro-batches, and not averaged: divide the loss of each by their number
before its backward pass."""
# exercise: train
# diagnosis: wrong_value


def loss_of(logits, targets, micro_batches):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    return loss.item(), loss
