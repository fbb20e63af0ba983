# exercise: algorithm_bandwidth
# diagnosis: none
def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds
