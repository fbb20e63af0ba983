# exercise: one_f_one_b_order
# diagnosis: none
def one_f_one_b_order(stage, stages, micro_batches):
    kept = min(micro_batches, stages - stage)
    words = ["forward"] * kept + ["backward", "forward"] * (micro_batches - kept)
    words += ["backward"] * kept
    counts = {"forward": iter(range(micro_batches)), "backward": iter(range(micro_batches))}
    return [(word, next(counts[word])) for word in words]
