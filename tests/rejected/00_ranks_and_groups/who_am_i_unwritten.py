# exercise: who_am_i
# diagnosis: not_attempted


def who_am_i():
    raise NotImplementedError
