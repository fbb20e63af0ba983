# exercise: hottest_ops
# diagnosis: wrong_value
# hint: That is by total time
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.cpu_time_total, reverse=True)
    return [row.key for row in rows[:k]]
