"""That is bytes times seconds. Twice the time for the same bytes is half the speed: divide."""
# exercise: algorithm_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return nbytes * seconds
