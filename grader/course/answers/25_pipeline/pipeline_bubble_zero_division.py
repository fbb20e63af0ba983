# exercise: pipeline_bubble
# diagnosis: exception
# hint: stages may be 1
def pipeline_bubble(stages, micro_batches):
    return 1 / (1 + micro_batches / (stages - 1))
