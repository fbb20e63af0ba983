"""It is the other way round: bytes divided by seconds."""
# exercise: algorithm_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return seconds / nbytes
