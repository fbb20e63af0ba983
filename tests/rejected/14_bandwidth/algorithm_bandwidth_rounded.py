# exercise: algorithm_bandwidth
# diagnosis: wrong_type
# hint: Return a float
def algorithm_bandwidth(nbytes, seconds):
    return round(nbytes / seconds)
