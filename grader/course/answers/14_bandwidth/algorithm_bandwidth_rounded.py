"""The result is rounded to a whole number: return nbytes / seconds as it is."""
# exercise: algorithm_bandwidth
# diagnosis: wrong_value


def algorithm_bandwidth(nbytes, seconds):
    return round(nbytes / seconds)
