# promise: a message is short, whatever an exception says
# exercise: neighbours
# verdict: failed
# diagnosis: exception
def neighbours():
    raise ValueError("A" * 50_000_000)
