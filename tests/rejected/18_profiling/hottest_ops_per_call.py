# exercise: hottest_ops
# diagnosis: wrong_value
# hint: by the time of one call
def hottest_ops(profile, k):
    rows = profile.key_averages()
    rows = sorted(rows, key=lambda row: row.self_cpu_time_total / row.count, reverse=True)
    return [row.key for row in rows[:k]]
