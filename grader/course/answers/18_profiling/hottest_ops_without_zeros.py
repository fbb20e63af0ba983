# exercise: hottest_ops
# diagnosis: wrong_shape
# hint: or as many as there are
def hottest_ops(profile, k):
    rows = [row for row in profile.key_averages() if row.self_cpu_time_total > 0]
    rows.sort(key=lambda row: row.self_cpu_time_total, reverse=True)
    return [row.key for row in rows[:k]]
