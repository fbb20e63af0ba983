# exercise: hottest_ops
# diagnosis: wrong_type
# hint: the .key of each row
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return rows[:k]
