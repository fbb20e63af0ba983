# exercise: gpipe_order
# diagnosis: wrong_value
# hint: The order is right, the words are
# Lists of ["F", i]
def gpipe_order(stage, stages, micro_batches):
    return [("F", i) for i in range(micro_batches)] + [("B", i) for i in range(micro_batches)]
