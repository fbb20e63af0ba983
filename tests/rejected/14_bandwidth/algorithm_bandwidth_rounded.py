# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: rounded to a whole number
# not: one rank already | 1 rank
def algorithm_bandwidth(nbytes, seconds):
    return round(nbytes / seconds)
