"""The gradients are summed over micro-batches, though the loss that is returned is their mean. Divide
the loss of each by their number before its backward pass, and not only where it is counted."""
# exercise: train
# diagnosis: wrong_value


def loss_of(logits, targets, micro_batches):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    return loss.item() / micro_batches, loss
