"""Every rank sends whole tensors to the others. Rank j needs only the heads that it works on, one
n-th of q, k and v."""
# exercise: ulysses_attention
# diagnosis: too_many_bytes
# An all-gather, made of an all-to-all that sends every rank the same.


def whole(x):
    came = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_to_all(came, [x] * len(came))
    return torch.cat(came, 1)


def ulysses_attention(q, k, v, causal):
    rank, tokens = dist.get_rank(), q.shape[1]
    return attend(*map(whole, (q, k, v)), causal)[:, rank * tokens : (rank + 1) * tokens]
