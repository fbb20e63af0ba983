# exercise: algorithm_bandwidth
# diagnosis: none
# The last bit may be another one than that of a plain division.
def algorithm_bandwidth(nbytes, seconds):
    return nbytes * (1.0 / seconds)
