# exercise: who_am_i
# diagnosis: not_attempted
# hint: -


def who_am_i():
    raise NotImplementedError
