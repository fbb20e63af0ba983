"""With one stage nothing is idle: stages − 1 units are lost, not stages."""
# exercise: pipeline_bubble
# diagnosis: wrong_value
# or: STEP = "right"

STEP = "longer"


def pipeline_bubble(stages, micro_batches):
    return stages / (micro_batches + stages - (1 if STEP == "right" else 0))
