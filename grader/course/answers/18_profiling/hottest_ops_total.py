"""That is by total time, which includes what an operator calls, so the outermost one always wins.
An operator's own time is self_cpu_time_total.
"""
# exercise: hottest_ops
# diagnosis: wrong_value
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.cpu_time_total, reverse=True)
    return [row.key for row in rows[:k]]
