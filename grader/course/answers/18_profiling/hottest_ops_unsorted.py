"""key_averages() does not come in order of time: sort the rows by self_cpu_time_total, the largest
first.
"""
# exercise: hottest_ops
# diagnosis: wrong_value
# not: total time
def hottest_ops(profile, k):
    return [row.key for row in profile.key_averages()][:k]
