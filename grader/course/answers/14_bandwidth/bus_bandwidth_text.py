# exercise: bus_bandwidth
# diagnosis: wrong_type
# hint: not a string
def bus_bandwidth(op, nbytes, seconds, world_size):
    return f"{nbytes / seconds / 1e9:.2f} GB/s"
