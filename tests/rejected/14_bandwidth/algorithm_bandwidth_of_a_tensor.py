# exercise: algorithm_bandwidth
# diagnosis: exception
# hint: is a number already
# says: AttributeError
def algorithm_bandwidth(nbytes, seconds):
    return nbytes.numel() * nbytes.itemsize / seconds
