# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: What is behind the point is dropped
def algorithm_bandwidth(nbytes, seconds):
    return nbytes // seconds
