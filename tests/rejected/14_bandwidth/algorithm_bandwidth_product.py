# exercise: algorithm_bandwidth
# diagnosis: wrong_value
def algorithm_bandwidth(nbytes, seconds):
    return nbytes * seconds
