"""The loss of a micro-batch is divided by their number twice. Of m micro-batches each counts with
1/m: divide once, before the backward pass."""
# exercise: train
# diagnosis: wrong_value


def loss_of(logits, targets, micro_batches):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / micro_batches
    return loss.item() / micro_batches, loss / micro_batches
