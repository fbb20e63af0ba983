"""Where the number of elements is odd, one of them is in neither half, and so it is never reduced.
tensor_split(2) leaves none out."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True

FAR = False


def halved(mine):
    half = len(mine) // 2
    return mine[:half], mine[half : 2 * half]
