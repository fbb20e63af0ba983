# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: the same unit for both
def pipeline_bubble(stages, micro_batches):
    return 2 * (stages - 1) / (micro_batches + 2 * (stages - 1))
