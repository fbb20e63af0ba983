# exercise: hottest_ops
# diagnosis: exception
# hint: There may be fewer than k operators
def hottest_ops(profile, k):
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return [rows[i].key for i in range(k)]
