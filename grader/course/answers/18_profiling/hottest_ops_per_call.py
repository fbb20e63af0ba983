"""That is by the time of one call. A cheap operator that is called very often can cost more in the
end: add up all its calls.
"""
# exercise: hottest_ops
# diagnosis: wrong_value
def hottest_ops(profile, k):
    rows = profile.key_averages()
    rows = sorted(rows, key=lambda row: row.self_cpu_time_total / row.count, reverse=True)
    return [row.key for row in rows[:k]]
