# exercise: hottest_ops
# diagnosis: wrong_value
# hint: the largest
def hottest_ops(profile, k):
    return [row.key for row in profile.key_averages()][:k]
