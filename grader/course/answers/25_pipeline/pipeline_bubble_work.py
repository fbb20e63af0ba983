"""That is the share in which a stage works. The bubble is the rest."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
def pipeline_bubble(stages, micro_batches):
    return micro_batches / (micro_batches + stages - 1)
