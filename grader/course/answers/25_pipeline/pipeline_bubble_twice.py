"""Count both kinds of passes everywhere, or one kind everywhere: a stage waits for stages − 1 forward
and stages − 1 backward passes, works for micro_batches of each, and the step is both together."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
# or: KINDS = 1, 2, 1
# or: KINDS = 2, 2, 1
# or: KINDS = 1, 1, 2

#: How many kinds of passes are counted: in what is idle, and in the work and the waiting of a step.
KINDS = 2, 1, 2


def pipeline_bubble(stages, micro_batches):
    idle, work, waiting = KINDS
    return idle * (stages - 1) / (work * micro_batches + waiting * (stages - 1))
