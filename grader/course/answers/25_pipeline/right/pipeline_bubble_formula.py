# exercise: pipeline_bubble
# diagnosis: none
def pipeline_bubble(stages, micro_batches):
    return (stages - 1) / (micro_batches + stages - 1)
