# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: longer than that
def pipeline_bubble(stages, micro_batches):
    return (stages - 1) / (micro_batches + stages)
