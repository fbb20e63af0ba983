# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: The bubble is the rest
def pipeline_bubble(stages, micro_batches):
    return micro_batches / (micro_batches + stages - 1)
