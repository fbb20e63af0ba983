# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit
def neighbours():
    rows = []
    while True:
        rows.append(bytearray(1 << 24))
