# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_shape
def neighbours():
    answer = [0]
    answer[0] = answer
    return answer
