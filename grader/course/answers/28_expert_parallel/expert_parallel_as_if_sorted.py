"""What has arrived is cut into blocks as if it were sorted by expert. It is sorted by the rank
that it comes from, and by expert only among the rows of one rank: the counts that arrived say
which row is for which expert."""
# exercise: expert_parallel
# diagnosis: wrong_value


def experts_of(arriving, number):
    return torch.arange(number).repeat_interleave(arriving.view(-1, number).sum(0))
