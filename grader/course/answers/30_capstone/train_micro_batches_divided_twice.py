"""The loss of a micro-batch is divided by their number twice. Of m micro-batches each counts with
1/m: divide once, before the backward pass."""
# exercise: train
# diagnosis: wrong_value
# or: TOLD = "right"

TOLD = "the same"


def loss_of(logits, targets, micro_batches):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / micro_batches
    return loss.item() / (micro_batches if TOLD == "the same" else 1), loss / micro_batches
