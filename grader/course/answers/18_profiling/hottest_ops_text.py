# exercise: hottest_ops
# diagnosis: wrong_type
# hint: Return a list of str
def hottest_ops(profile, k):
    return profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=k)
