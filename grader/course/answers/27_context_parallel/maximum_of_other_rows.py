"""What is subtracted from the scores of a row is far above all of them, so exp gives 0 for each,
and 0/0 is not a number. Subtract the row's own largest score: there is one for each query of each
head. (One that is kept from block to block begins at −∞, not at 0.)"""
# exercise: ring_attention, ulysses_attention
# diagnosis: wrong_value


def begin(q):
    m = torch.zeros_like(q[..., :1])
    return m, torch.zeros_like(m), torch.zeros_like(q)


def softmax(scores):
    weights = (scores - scores.max()).exp()
    return weights / weights.sum(-1, keepdim=True)
