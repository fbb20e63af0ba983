# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: drops what is behind the point
def algorithm_bandwidth(nbytes, seconds):
    return nbytes // seconds
