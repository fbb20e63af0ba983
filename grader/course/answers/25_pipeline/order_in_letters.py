"""The order is right, the words are not: the first of each pair is "forward" or "backward"."""
# exercise: gpipe_order, one_f_one_b_order
# diagnosis: wrong_value
# or: WORDS = {"forward": "fwd", "backward": "bwd"}
# or: WORDS = {"forward": "f", "backward": "b"}
# or: DOWN = True
# or: DOWN = True; WORDS = {"forward": "fwd", "backward": "bwd"}
# or: DOWN = True; WORDS = {"forward": "f", "backward": "b"}

WORDS = {"forward": "F", "backward": "B"}
DOWN = False


def gpipe_order(stage, stages, micro_batches):
    order = all_forward_first(micro_batches)
    if DOWN:
        order[micro_batches:] = order[: micro_batches - 1 : -1]
    return [(WORDS[what], i) for what, i in order]


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    return [(WORDS[what], i) for what, i in alternating(warm_up, micro_batches)]
