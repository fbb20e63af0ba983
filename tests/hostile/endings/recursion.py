# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: exception
def neighbours():
    return neighbours()
