# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: bytes times seconds
# not: one rank already | 1 rank
def algorithm_bandwidth(nbytes, seconds):
    return nbytes * seconds
