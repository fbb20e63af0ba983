"""What is behind the point is dropped, as // and int() do: return nbytes / seconds as it is."""
# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# not: // drops


def algorithm_bandwidth(nbytes, seconds):
    return nbytes // seconds
