# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: other way round
def algorithm_bandwidth(nbytes, seconds):
    return seconds / nbytes
