"""A step is one unit shorter than that: micro_batches units of work, and stages − 1 of waiting."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
def pipeline_bubble(stages, micro_batches):
    return (stages - 1) / (micro_batches + stages)
