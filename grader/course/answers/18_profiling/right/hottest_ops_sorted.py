# exercise: hottest_ops
# diagnosis: none
# The list's own sort.
def hottest_ops(profile, k):
    rows = list(profile.key_averages())
    rows.sort(key=lambda row: -row.self_cpu_time_total)
    return [row.key for row in rows][:k]
