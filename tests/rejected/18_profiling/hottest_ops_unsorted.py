# exercise: hottest_ops
# diagnosis: wrong_value
# hint: does not come in order of time
# not: total time
def hottest_ops(profile, k):
    return [row.key for row in profile.key_averages()][:k]
