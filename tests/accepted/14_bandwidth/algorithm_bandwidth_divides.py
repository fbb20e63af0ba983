# exercise: algorithm_bandwidth
def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds
