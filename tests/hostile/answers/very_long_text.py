# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_type
def neighbours():
    return "x" * 100_000_000
