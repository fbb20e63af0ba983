# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit or timeout
def neighbours():
    rows = []
    while True:
        rows.append(bytearray(1 << 24))
