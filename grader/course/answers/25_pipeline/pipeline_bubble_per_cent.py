"""That is a percentage. Return the share as a number between 0 and 1."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
def pipeline_bubble(stages, micro_batches):
    return 100 * (stages - 1) / (micro_batches + stages - 1)
