# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: percentage
def pipeline_bubble(stages, micro_batches):
    return 100 * (stages - 1) / (micro_batches + stages - 1)
