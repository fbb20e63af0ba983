# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: bits a second
def algorithm_bandwidth(nbytes, seconds):
    return 8 * nbytes / seconds
