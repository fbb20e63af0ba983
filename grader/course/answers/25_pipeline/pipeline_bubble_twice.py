"""It is the same unit for both: a stage waits for stages − 1 forward and stages − 1 backward
passes, and works for micro_batches of each."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
# or: TWICE = "work"

TWICE = "waiting"


def pipeline_bubble(stages, micro_batches):
    waiting = (2 if TWICE == "waiting" else 1) * (stages - 1)
    return waiting / ((1 if TWICE == "waiting" else 2) * micro_batches + waiting)
