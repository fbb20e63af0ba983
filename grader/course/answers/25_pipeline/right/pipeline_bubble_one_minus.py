# exercise: pipeline_bubble
# diagnosis: none
def pipeline_bubble(stages, micro_batches):
    return 1 - micro_batches / (micro_batches + stages - 1)
