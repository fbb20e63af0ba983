# exercise: hottest_ops
# diagnosis: wrong_value
# hint: The coldest come first
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total)
    return [row.key for row in rows[:k]]
