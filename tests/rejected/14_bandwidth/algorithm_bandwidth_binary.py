# exercise: algorithm_bandwidth
# diagnosis: wrong_value
# hint: binary gigabytes
def algorithm_bandwidth(nbytes, seconds):
    return nbytes / seconds / 2**30
