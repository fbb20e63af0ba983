# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: gigabytes a second
def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds / 1e9
