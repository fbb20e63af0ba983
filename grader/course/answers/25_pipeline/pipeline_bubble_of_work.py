"""That compares the idle time with the *work*, as papers do. Divide by the whole time of a stage
instead: work and waiting together."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
def pipeline_bubble(stages, micro_batches):
    return (stages - 1) / micro_batches
