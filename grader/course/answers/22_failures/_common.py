"""What the mistakes of this chapter share."""
from itertools import zip_longest


def norm_of(calls):
    """Return the most frequent call; of equally frequent ones that of the lowest rank."""
    made = [call for call in calls if call is not None]
    return max(made, key=made.count)
