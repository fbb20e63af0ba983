# exercise: pipeline_bubble
# diagnosis: none
def pipeline_bubble(stages, micro_batches):
    overhead = (stages - 1) / micro_batches
    return overhead / (1 + overhead)
