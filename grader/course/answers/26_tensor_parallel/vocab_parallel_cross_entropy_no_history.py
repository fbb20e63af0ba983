"""No gradient comes back: what was reduced has lost its history. Write a torch.autograd.Function,
and return (softmax − one-hot) / rows from its backward."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard.detach(), targets)
