# exercise: time_kernel
# diagnosis: exception
# hint: keep these parameters
# not: torch.cuda | on the CPU use
# says: TypeError
def time_kernel(fn, warmup, iterations):
    return 0.0
