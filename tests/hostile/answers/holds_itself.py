# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_type
def neighbours():
    answer = [0, 0]
    answer[0] = answer[1] = answer
    return answer
