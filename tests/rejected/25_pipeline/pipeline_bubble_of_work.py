# exercise: pipeline_bubble
# diagnosis: wrong_value
# hint: with the *work*
def pipeline_bubble(stages, micro_batches):
    return (stages - 1) / micro_batches
