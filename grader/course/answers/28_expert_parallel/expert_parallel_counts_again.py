"""The rows are as many as they should be; it is the counts that travel more than once. As many
rows as came from a rank go back to it, and gradients take the same way: exchange the counts once,
and keep both lists."""
# exercise: expert_parallel
# diagnosis: too_many_bytes
# or: AGAIN = 2
# or: AGAIN = 3

AGAIN = 1


def exchanged(counts):
    arriving = torch.empty_like(counts)
    for _ in range(1 + AGAIN):
        dist.all_to_all_single(arriving, counts)
    return arriving
