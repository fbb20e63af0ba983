# exercise: hottest_ops
# diagnosis: wrong_type
# hint: Return a list of str
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return [[row.key, row.self_cpu_time_total] for row in rows[:k]]
