# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: What is behind the point is dropped
# not: // drops
def algorithm_bandwidth(nbytes, seconds):
    return int(nbytes / seconds)
