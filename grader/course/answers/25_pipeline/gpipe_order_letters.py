# exercise: gpipe_order
# diagnosis: wrong_type
# hint: a pair of a word and a number
def gpipe_order(stage, stages, micro_batches):
    return ["F"] * micro_batches + ["B"] * micro_batches
