# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit
def neighbours():
    return (1 << (1 << 36),)
