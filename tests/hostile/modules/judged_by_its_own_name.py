# promise: what runs when a file is loaded runs in a rank and nowhere else
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_value

__name__ = "__main__"
__builtins__ = {}
__file__ = "/course/grader/__init__.py"


def neighbours():
    return -1, -1
