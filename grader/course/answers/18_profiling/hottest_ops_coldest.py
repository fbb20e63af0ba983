"""The coldest come first: sort with the largest time first."""
# exercise: hottest_ops
# diagnosis: wrong_value
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total)
    return [row.key for row in rows[:k]]
