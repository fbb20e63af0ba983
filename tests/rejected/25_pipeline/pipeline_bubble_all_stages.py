# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: With one stage nothing is idle
def pipeline_bubble(stages, micro_batches):
    return stages / (micro_batches + stages)
