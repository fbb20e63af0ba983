"""Each rank decides by its own loss, so some stop and others go on, and wait for them forever.
Decide by the mean of all."""
# exercise: should_stop
# diagnosis: wrong_value
def should_stop(loss, best):
    return loss >= best
