"""What has arrived is taken as if it were sorted by expert. It is sorted by the rank that it comes
from, and by expert only among the rows of one rank: the counts that arrived say which row is for
which expert."""
# exercise: expert_parallel
# diagnosis: wrong_value
# or: ROWS = "labelled"

ROWS = "cut"


def experts_of(arriving, number):
    if ROWS == "labelled":
        each = torch.arange(number).repeat_interleave(dist.get_world_size())
        return each.repeat_interleave(arriving)
    return torch.arange(number).repeat_interleave(arriving.view(-1, number).sum(0))
