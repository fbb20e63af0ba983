# exercise: pipeline_bubble
# diagnosis: wrong_type
# hint: -
def pipeline_bubble(stages, micro_batches):
    return f"{(stages - 1) / (micro_batches + stages - 1):.2%}"
