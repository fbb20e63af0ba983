# exercise: one_f_one_b_order
# diagnosis: wrong_type
# hint: a pair of a word and a number
def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage, micro_batches)
    return "F" * warm_up + "BF" * (micro_batches - warm_up) + "B" * warm_up
