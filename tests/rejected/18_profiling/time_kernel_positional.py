# exercise: time_kernel
# diagnosis: exception
# hint: 
# says: TypeError
def time_kernel(fn, warmup, iterations):
    return 0.0
