# exercise: bus_bandwidth
# diagnosis: wrong_type
# hint: not a text
def bus_bandwidth(op, nbytes, seconds, world_size):
    return f"{nbytes / seconds / 1e9:.2f} GB/s"
