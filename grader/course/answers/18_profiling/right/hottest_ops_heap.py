# exercise: hottest_ops
# diagnosis: none
# A heap; and what a GPU did counts as well, which is nothing here.
import heapq


def _own(row):
    return row.self_cpu_time_total + row.self_device_time_total


def hottest_ops(profile, k):
    return [row.key for row in heapq.nlargest(k, profile.key_averages(), key=_own)]
