"""Return k names, and none if k is 0: rows[:k]."""
# exercise: hottest_ops
# diagnosis: wrong_shape
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return [row.key for row in rows]
